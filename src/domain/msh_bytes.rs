//! Words and numbers of a file that is text with binary parts.

use super::DomainError;

pub(super) type Read<T> = Result<T, DomainError>;

/// The bytes of a file and a place in it.
pub(super) struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
    binary: bool,
    /// The bytes of numbers stand the other way round.
    swapped: bool,
}

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            binary: false,
            swapped: false,
        }
    }

    pub(super) fn is_binary(&self) -> bool {
        self.binary
    }

    /// The line of the place, from 1; none in a binary file, whose numbers are no lines.
    pub(super) fn line(&self) -> Option<usize> {
        let before = self.bytes[..self.at.min(self.bytes.len())].iter();
        (!self.binary).then(|| before.filter(|byte| **byte == b'\n').count() + 1)
    }

    fn ended() -> DomainError {
        DomainError::new("ends too early").help("the file was cut off: save it again")
    }

    fn skip_space(&mut self) {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    /// The next word of text.
    pub(super) fn word(&mut self) -> Read<&'a str> {
        self.skip_space();
        let rest = &self.bytes[self.at..];
        let length = rest
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(rest.len());
        if length == 0 {
            return Err(Self::ended());
        }
        let word = std::str::from_utf8(&rest[..length.min(200)])
            .map_err(|_| DomainError::new("has bytes where a word is expected"))?;
        self.at += length;
        Ok(word)
    }

    pub(super) fn text_number<T: std::str::FromStr>(&mut self) -> Read<T> {
        let word = self.word()?;
        word.parse().map_err(|_| {
            DomainError::new(format!(
                "has `{}` where a number is expected",
                word.escape_debug()
            ))
        })
    }

    /// A name in quotes.
    pub(super) fn quoted(&mut self) -> Read<String> {
        self.skip_space();
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(DomainError::new("has a group whose name is not in quotes"));
        }
        let rest = &self.bytes[self.at + 1..];
        let end = rest
            .iter()
            .position(|byte| *byte == b'"')
            .ok_or_else(Self::ended)?;
        let name = std::str::from_utf8(&rest[..end])
            .map_err(|_| DomainError::new("has a group whose name is not UTF-8"))?;
        self.at += end + 2;
        Ok(name.to_string())
    }

    fn take<const N: usize>(&mut self) -> Read<[u8; N]> {
        let some = self.bytes.get(self.at..self.at + N).ok_or_else(Self::ended)?;
        self.at += N;
        let mut bytes: [u8; N] = some.try_into().map_err(|_| Self::ended())?;
        if self.swapped {
            bytes.reverse();
        }
        Ok(bytes)
    }

    /// After the header of a binary file: the number 1, which tells how bytes are ordered.
    pub(super) fn binary_numbers(&mut self) -> Read<()> {
        self.begin_data();
        let one = self.bytes.get(self.at..self.at + 4).ok_or_else(Self::ended)?;
        self.swapped = match one {
            [1, 0, 0, 0] => false,
            [0, 0, 0, 1] => true,
            _ => {
                return Err(DomainError::new(
                    "says that it is binary, but its first number is not 1",
                ));
            }
        };
        self.at += 4;
        self.binary = true;
        Ok(())
    }

    /// Binary data begin after the end of the line.
    pub(super) fn begin_data(&mut self) {
        if self.bytes.get(self.at) == Some(&b'\r') {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'\n') {
            self.at += 1;
        }
    }

    pub(super) fn int(&mut self) -> Read<i64> {
        match self.binary {
            true => Ok(i64::from(i32::from_le_bytes(self.take()?))),
            false => self.text_number(),
        }
    }

    pub(super) fn size(&mut self) -> Read<usize> {
        match self.binary {
            true => usize::try_from(u64::from_le_bytes(self.take()?))
                .map_err(|_| DomainError::new("has a number that is too large")),
            false => self.text_number(),
        }
    }

    pub(super) fn real(&mut self) -> Read<f64> {
        match self.binary {
            true => Ok(f64::from_le_bytes(self.take()?)),
            false => self.text_number(),
        }
    }

    /// The name of the next section; none at the end of the file.
    pub(super) fn next_section(&mut self) -> Read<Option<String>> {
        self.skip_space();
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        let word = self.word()?;
        let Some(name) = word.strip_prefix('$') else {
            return Err(DomainError::new(format!(
                "has `{}` where a section is expected",
                word.escape_debug()
            )));
        };
        let name = name.to_string();
        self.begin_data();
        Ok(Some(name))
    }

    pub(super) fn end_of(&mut self, section: &str) -> Read<()> {
        let word = self.word()?;
        match word.strip_prefix("$End") {
            Some(name) if name == section => Ok(()),
            _ => Err(DomainError::new(format!(
                "has `{}` where $End{section} is expected",
                word.escape_debug()
            ))),
        }
    }

    /// To the end of a section that nobody needs.
    pub(super) fn skip_section(&mut self, section: &str) -> Read<()> {
        let end = format!("$End{section}");
        let rest = &self.bytes[self.at..];
        let found = rest
            .windows(end.len())
            .position(|window| window == end.as_bytes());
        self.at += found.ok_or_else(Self::ended)? + end.len();
        Ok(())
    }
}
