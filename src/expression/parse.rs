//! Text to syntax tree: a Pratt parser.

use super::ExpressionError;
use std::ops::Range;

/// Deeper nesting than any sensible formula has; bounds the parser's recursion.
const MAX_DEPTH: usize = 100;

/// Sums and products of more parts than this are balanced; those of fewer group to the left as usual.
pub(super) const LONG_CHAIN: usize = 256;

/// A syntax tree whose nodes know their place in the text.
#[derive(Debug, Clone, PartialEq)]
pub struct Ast {
    /// What stands there.
    pub kind: AstKind,
    /// Where it stands, in bytes.
    pub span: Range<usize>,
}

/// The kinds of syntax-tree nodes.
#[derive(Debug, Clone, PartialEq)]
pub enum AstKind {
    /// A literal.
    Number(f64),
    /// A name: a coordinate, a constant, the unknown, a summation index.
    Name(String),
    /// `name[index]`.
    Index(String, Box<Ast>),
    /// `name(arguments)`.
    Call(String, Vec<Ast>),
    /// `-operand`.
    Negate(Box<Ast>),
    /// `left operator right`, the operator one of `+ - * / ^`, `< ≤ > ≥`, or `&` and `|` for `and` and `or`.
    Binary(char, Box<Ast>, Box<Ast>),
    /// `not operand`.
    Not(Box<Ast>),
    /// `[a, b, …]`, a vector.
    Vector(Vec<Ast>),
}

/// Parses a formula. `-x^2` is `-(x^2)` and `^` groups to the right.
pub fn parse(text: &str) -> Result<Ast, ExpressionError> {
    let mut parser = Parser {
        text,
        position: 0,
        depth: 0,
    };
    let ast = parser.expression(0)?;
    match parser.peek() {
        None => Ok(ast),
        Some((token, span)) => Err(ExpressionError::new(
            match token {
                Token::Symbol(')') => "this `)` closes nothing".to_string(),
                other => format!("expected an operator or the end, found {}", other.describe()),
            },
            span,
        )),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Symbol(char),
    Bad(String),
}

impl Token {
    fn describe(&self) -> String {
        match self {
            Token::Number(value) => format!("the number {value}"),
            Token::Name(name) => format!("the name `{name}`"),
            Token::Symbol('&') => "`and`".to_string(),
            Token::Symbol('|') => "`or`".to_string(),
            Token::Symbol('!') => "`not`".to_string(),
            Token::Symbol(symbol) => format!("`{symbol}`"),
            Token::Bad(message) => message.clone(),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    depth: usize,
}

const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const COMPARISON: u8 = 4;
const ADDITIVE: u8 = 5;
const MULTIPLICATIVE: u8 = 6;
const UNARY: u8 = 7;
const POWER: u8 = 8;

impl Parser<'_> {
    /// The next token and its place, without taking it.
    fn peek(&self) -> Option<(Token, Range<usize>)> {
        let rest = &self.text[self.position..];
        let start = self.position + (rest.len() - rest.trim_start().len());
        let rest = &self.text[start..];
        let first = rest.chars().next()?;
        let (token, length) = if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            match rest[..length].replace('_', "").parse::<f64>() {
                Ok(value) if value.is_finite() => (Token::Number(value), length),
                _ => (
                    Token::Bad(format!("`{}`, which is not a number", &rest[..length])),
                    length,
                ),
            }
        } else if first.is_alphabetic() || first == '_' {
            let length = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            let token = match &rest[..length] {
                "and" => Token::Symbol('&'),
                "or" => Token::Symbol('|'),
                "not" => Token::Symbol('!'),
                name => Token::Name(name.to_string()),
            };
            (token, length)
        } else if first == '−' {
            (Token::Symbol('-'), first.len_utf8())
        } else if rest.starts_with("<=") || rest.starts_with(">=") {
            (Token::Symbol(if first == '<' { '≤' } else { '≥' }), 2)
        } else if matches!(first, '≤' | '≥') {
            (Token::Symbol(first), first.len_utf8())
        } else if "+-*/^()[],<>".contains(first) {
            (Token::Symbol(first), 1)
        } else {
            (Token::Bad(format!("the character `{first}`")), first.len_utf8())
        };
        Some((token, start..start + length))
    }

    fn take(&mut self, span: &Range<usize>) {
        self.position = span.end;
    }

    fn end(&self) -> Range<usize> {
        let end = self.text.trim_end().len();
        end..end
    }

    /// Takes `symbol` or says what was found instead; `opened` is the bracket it should close.
    fn expect(&mut self, symbol: char, opened: &Range<usize>) -> Result<Range<usize>, ExpressionError> {
        match self.peek() {
            Some((Token::Symbol(found), span)) if found == symbol => {
                self.take(&span);
                Ok(span)
            }
            Some((token, span)) => Err(ExpressionError::new(
                format!("expected `{symbol}`, found {}", token.describe()),
                span,
            )),
            None => Err(ExpressionError::new(
                format!("this bracket is never closed: `{symbol}` is missing"),
                opened.clone(),
            )),
        }
    }

    fn expression(&mut self, minimum: u8) -> Result<Ast, ExpressionError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ExpressionError::new(
                format!("nested more than {MAX_DEPTH} deep"),
                self.position..self.position,
            ));
        }
        let result = self.operators(minimum);
        self.depth -= 1;
        result
    }

    fn operators(&mut self, minimum: u8) -> Result<Ast, ExpressionError> {
        let mut left = self.operand()?;
        let mut chain = Chain::default();
        while let Some((Token::Symbol(operator), span)) = self.peek() {
            let (strength, right_minimum) = match operator {
                '|' => (OR, OR + 1),
                '&' => (AND, AND + 1),
                '<' | '>' | '≤' | '≥' => (COMPARISON, COMPARISON + 1),
                '+' | '-' => (ADDITIVE, ADDITIVE + 1),
                '*' | '/' => (MULTIPLICATIVE, MULTIPLICATIVE + 1),
                // Right-associative; the exponent may carry a sign: 2^-1.
                '^' => (POWER, UNARY),
                _ => break,
            };
            if strength < minimum {
                break;
            }
            self.take(&span);
            let right = self.expression(right_minimum)?;
            if strength != chain.strength {
                left = std::mem::take(&mut chain).joined(left);
                chain.strength = strength;
            }
            if strength == COMPARISON && !chain.parts.is_empty() {
                return Err(ExpressionError::new(
                    "compare two numbers at a time, as in `a < b and b < c`",
                    span,
                ));
            }
            chain.parts.push((operator, right));
        }
        Ok(chain.joined(left))
    }

    fn operand(&mut self) -> Result<Ast, ExpressionError> {
        let Some((token, span)) = self.peek() else {
            return Err(ExpressionError::new(
                "expected a number, a name or `(`, found the end",
                self.end(),
            ));
        };
        match token {
            Token::Number(value) => {
                self.take(&span);
                Ok(Ast {
                    kind: AstKind::Number(value),
                    span,
                })
            }
            Token::Name(name) => {
                self.take(&span);
                self.after_name(name, span)
            }
            // There is no sign `+`: in `x^ + 1` an exponent is missing.
            Token::Symbol('-') => {
                self.take(&span);
                let operand = self.expression(UNARY)?;
                Ok(Ast {
                    span: span.start..operand.span.end,
                    kind: AstKind::Negate(Box::new(operand)),
                })
            }
            Token::Symbol('!') => {
                self.take(&span);
                let operand = self.expression(NOT)?;
                Ok(Ast {
                    span: span.start..operand.span.end,
                    kind: AstKind::Not(Box::new(operand)),
                })
            }
            Token::Symbol('[') => {
                self.take(&span);
                let (parts, close) = self.list(']', &span)?;
                Ok(Ast {
                    kind: AstKind::Vector(parts),
                    span: span.start..close.end,
                })
            }
            Token::Symbol('(') => {
                self.take(&span);
                let inner = self.expression(0)?;
                let close = self.expect(')', &span)?;
                Ok(Ast {
                    kind: inner.kind,
                    span: span.start..close.end,
                })
            }
            other => Err(ExpressionError::new(
                format!("expected a number, a name or `(`, found {}", other.describe()),
                span,
            )),
        }
    }

    /// Expressions with commas between them, up to a closing bracket.
    fn list(
        &mut self,
        close: char,
        open: &Range<usize>,
    ) -> Result<(Vec<Ast>, Range<usize>), ExpressionError> {
        let mut parts = vec![self.expression(0)?];
        while let Some((Token::Symbol(','), comma)) = self.peek() {
            self.take(&comma);
            parts.push(self.expression(0)?);
        }
        Ok((parts, self.expect(close, open)?))
    }

    /// A name alone, `name[index]` or `name(arguments)`.
    fn after_name(&mut self, name: String, span: Range<usize>) -> Result<Ast, ExpressionError> {
        match self.peek() {
            Some((Token::Symbol('['), open)) => {
                self.take(&open);
                let index = self.expression(0)?;
                let close = self.expect(']', &open)?;
                Ok(Ast {
                    kind: AstKind::Index(name, Box::new(index)),
                    span: span.start..close.end,
                })
            }
            Some((Token::Symbol('('), open)) => {
                self.take(&open);
                let (arguments, close) = self.list(')', &open)?;
                Ok(Ast {
                    kind: AstKind::Call(name, arguments),
                    span: span.start..close.end,
                })
            }
            _ => Ok(Ast {
                kind: AstKind::Name(name),
                span,
            }),
        }
    }
}

/// Operators of one strength with what follows each.
#[derive(Default)]
struct Chain {
    strength: u8,
    parts: Vec<(char, Ast)>,
}

impl Chain {
    /// `first` and all parts as one tree.
    ///
    /// What walks the tree or the graph made from it goes as deep as they are: a long sum that groups to
    /// the left would overflow the stack. Its neighbours are joined instead, until one tree is left.
    fn joined(self, first: Ast) -> Ast {
        let (direct, inverse, longest) = match self.strength {
            ADDITIVE => ('+', '-', LONG_CHAIN),
            MULTIPLICATIVE => ('*', '/', LONG_CHAIN),
            AND => ('&', '&', LONG_CHAIN),
            OR => ('|', '|', LONG_CHAIN),
            // Powers and comparisons cannot be grouped at will; they do not come in long rows.
            _ => ('*', '/', usize::MAX),
        };
        let mut parts = self.parts;
        let mut left = first;
        while parts.len() >= longest {
            let mut rest = std::mem::take(&mut parts).into_iter();
            if let Some((operator, right)) = rest.next() {
                left = join(operator, left, right);
            }
            while let Some((operator, part)) = rest.next() {
                parts.push(match rest.next() {
                    None => (operator, part),
                    // − a − b is −(a + b), and − a + b is + (b − a).
                    Some((next, other)) if next == operator => (operator, join(direct, part, other)),
                    Some((_, other)) if operator == direct => (direct, join(inverse, part, other)),
                    Some((_, other)) => (direct, join(inverse, other, part)),
                });
            }
        }
        parts
            .into_iter()
            .fold(left, |left, (operator, right)| join(operator, left, right))
    }
}

fn join(operator: char, left: Ast, right: Ast) -> Ast {
    Ast {
        span: left.span.start.min(right.span.start)..right.span.end.max(left.span.end),
        kind: AstKind::Binary(operator, Box::new(left), Box::new(right)),
    }
}

/// How many bytes at the start of `text` look like a number, bad ones such as `1e` included.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut length = 0;
    while length < bytes.len() {
        let c = bytes[length];
        let exponent_sign =
            (c == b'+' || c == b'-') && length > 0 && matches!(bytes[length - 1], b'e' | b'E');
        if !(c.is_ascii_digit() || matches!(c, b'.' | b'_' | b'e' | b'E') || exponent_sign) {
            break;
        }
        length += 1;
    }
    length
}
