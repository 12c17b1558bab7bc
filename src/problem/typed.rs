//! Values as they are typed: a formula may be a bare number, and a number a formula.

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use std::fmt;
use std::ops::Deref;

/// A formula; `1e-4` stands for `"1e-4"`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Text(pub String);

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// A number, or a formula for one: `2.5`, `"2*pi"`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Real {
    Number(f64),
    Formula(Text),
}

/// A whole number, or a formula for one in `n`, the number of neurons.
#[derive(Debug, Clone)]
pub(super) enum Count {
    Number(i64),
    Formula(Text),
}

/// Whatever stands where a number or a formula may stand.
enum Typed {
    Whole(i64),
    Number(f64),
    Formula(String),
}

impl Typed {
    fn read<'de, D: Deserializer<'de>>(deserializer: D, wanted: &'static str) -> Result<Self, D::Error> {
        struct Reader(&'static str);
        impl Visitor<'_> for Reader {
            type Value = Typed;

            fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
                formatter.write_str(self.0)
            }

            fn visit_i64<E>(self, number: i64) -> Result<Typed, E> {
                Ok(Typed::Whole(number))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Typed, E> {
                Ok(Typed::Number(number))
            }

            fn visit_str<E>(self, formula: &str) -> Result<Typed, E> {
                Ok(Typed::Formula(formula.to_string()))
            }
        }
        deserializer.deserialize_any(Reader(wanted))
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Text(match Typed::read(deserializer, "a formula or a number")? {
            Typed::Whole(number) => number.to_string(),
            Typed::Number(number) if number.is_finite() => format!("{number:?}"),
            Typed::Number(_) => return Err(D::Error::custom("must be a finite number or a formula")),
            Typed::Formula(formula) => formula,
        }))
    }
}

impl<'de> Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(
            match Typed::read(deserializer, "a number, or a formula for one such as \"2*pi\"")? {
                Typed::Whole(number) => Real::Number(number as f64),
                Typed::Number(number) => Real::Number(number),
                Typed::Formula(formula) => Real::Formula(Text(formula)),
            },
        )
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const WANTED: &str = "a whole number, or a formula in n such as \"n^2/10\"";
        Ok(match Typed::read(deserializer, WANTED)? {
            Typed::Whole(number) => Count::Number(number),
            // 1e6 is a whole number too.
            Typed::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
                Count::Number(number as i64)
            }
            Typed::Number(number) => {
                return Err(D::Error::custom(format!("{number} is not a whole number")));
            }
            Typed::Formula(formula) => Count::Formula(Text(formula)),
        })
    }
}
