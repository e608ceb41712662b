//! The part of CBOR (RFC 8949) that authenticators write: CTAP2 allows definite lengths alone and four
//! levels. Borrows from what it reads; nothing is taken from a length that the bytes do not hold.

/// Levels of arrays and maps (CTAP2, canonical CBOR).
const MAX_DEPTH: u8 = 4;

/// Entries of a map: keys are compared with each other.
const MAX_ENTRIES: usize = 64;

/// Not CBOR as an authenticator writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadCbor;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    Text(&'a str),
    List(Vec<Item<'a>>),
    /// In the order in which they stand, each key once.
    Map(Vec<(Item<'a>, Item<'a>)>),
    Bool(bool),
    Null,
}

impl Item<'_> {
    /// A map's entry with a name.
    pub(crate) fn at(&self, name: &str) -> Option<&Self> {
        self.entry(|key| matches!(key, Item::Text(text) if *text == name))
    }

    /// A map's entry with a number.
    pub(crate) fn of(&self, label: i64) -> Option<&Self> {
        self.entry(|key| matches!(key, Item::Int(number) if *number == label))
    }

    fn entry(&self, is: impl Fn(&Self) -> bool) -> Option<&Self> {
        let Item::Map(entries) = self else { return None };
        entries.iter().find(|(key, _)| is(key)).map(|(_, value)| value)
    }
}

/// Reads one item that is all there is.
pub(crate) fn read(bytes: &[u8]) -> Result<Item<'_>, BadCbor> {
    match read_one(bytes)? {
        (item, []) => Ok(item),
        _ => Err(BadCbor),
    }
}

/// Reads one item; gives what stands behind it.
pub(crate) fn read_one(bytes: &[u8]) -> Result<(Item<'_>, &[u8]), BadCbor> {
    let mut reader = Reader { rest: bytes };
    let item = reader.item(0)?;
    Ok((item, reader.rest))
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], BadCbor> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(BadCbor)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The number that the head of an item carries (section 3).
    fn argument(&mut self, short: u8) -> Result<u64, BadCbor> {
        let width = match short {
            0..=23 => return Ok(u64::from(short)),
            24..=27 => 1_usize << (short - 24),
            _ => return Err(BadCbor),
        };
        Ok(self.take(width)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn length(&mut self, short: u8) -> Result<usize, BadCbor> {
        let length = usize::try_from(self.argument(short)?).map_err(|_| BadCbor)?;
        // Each item that follows has at least a byte.
        if length > self.rest.len() { Err(BadCbor) } else { Ok(length) }
    }

    fn item(&mut self, depth: u8) -> Result<Item<'a>, BadCbor> {
        let head = *self.take(1)?.first().ok_or(BadCbor)?;
        let (major, short) = (head >> 5, head & 0x1f);
        match major {
            0 => Ok(Item::Int(i64::try_from(self.argument(short)?).map_err(|_| BadCbor)?)),
            1 => {
                let value = i64::try_from(self.argument(short)?).map_err(|_| BadCbor)?;
                Ok(Item::Int(-1 - value))
            }
            2 => {
                let length = self.length(short)?;
                Ok(Item::Bytes(self.take(length)?))
            }
            3 => {
                let length = self.length(short)?;
                let text = std::str::from_utf8(self.take(length)?).map_err(|_| BadCbor)?;
                Ok(Item::Text(text))
            }
            4 | 5 if depth >= MAX_DEPTH => Err(BadCbor),
            4 => {
                let length = self.length(short)?;
                let items = (0..length).map(|_| self.item(depth + 1)).collect::<Result<_, _>>()?;
                Ok(Item::List(items))
            }
            5 => self.map(short, depth),
            7 if short == 20 || short == 21 => Ok(Item::Bool(short == 21)),
            7 if short == 22 => Ok(Item::Null),
            _ => Err(BadCbor),
        }
    }

    fn map(&mut self, short: u8, depth: u8) -> Result<Item<'a>, BadCbor> {
        let mut entries: Vec<(Item<'a>, Item<'a>)> = Vec::new();
        let length = self.length(short)?;
        if length > MAX_ENTRIES {
            return Err(BadCbor);
        }
        for _ in 0..length {
            let key = self.item(depth + 1)?;
            if !matches!(key, Item::Int(_) | Item::Text(_)) {
                return Err(BadCbor);
            }
            if entries.iter().any(|(other, _)| *other == key) {
                return Err(BadCbor);
            }
            entries.push((key, self.item(depth + 1)?));
        }
        Ok(Item::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn examples_of_the_rfc_are_read() {
        // RFC 8949, appendix A.
        for (bytes, item) in [
            (&[0x00][..], Item::Int(0)),
            (&[0x18, 0x64], Item::Int(100)),
            (&[0x1a, 0x00, 0x0f, 0x42, 0x40], Item::Int(1_000_000)),
            (&[0x38, 0x63], Item::Int(-100)),
            (&[0xf5], Item::Bool(true)),
            (&[0xf6], Item::Null),
            (&[0x44, 1, 2, 3, 4], Item::Bytes(&[1, 2, 3, 4])),
            (&[0x62, 0xc3, 0xbc, 0x00][..3], Item::Text("ü")),
            (&[0x82, 0x01, 0x02], Item::List(vec![Item::Int(1), Item::Int(2)])),
            (&[0xa1, 0x61, 0x61, 0x01], Item::Map(vec![(Item::Text("a"), Item::Int(1))])),
        ] {
            assert_eq!(read(bytes), Ok(item), "{bytes:02x?}");
        }
    }

    #[test]
    fn what_an_authenticator_does_not_write_is_refused() {
        let deep: Vec<u8> = [[0x81; 5].as_slice(), &[0x00]].concat();
        let deepest = vec![0x81; 100_000];
        for bytes in [
            &[][..],
            &[0x18],                                                 // cut
            &[0x44, 1, 2, 3],                                        // cut
            &[0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], // longer than anything
            &[0x9b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0xbb, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
            &[0x1b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], // no i64
            &[0x5f, 0x41, 1, 0xff],                                  // indefinite
            &[0xa2, 0x01, 0x01, 0x01, 0x02],                         // a key twice
            &[0xa1, 0x80, 0x01],                                     // a list as a key
            &[0x61, 0xff],                                           // not UTF-8
            &[0xc0, 0x60],                                           // a tag
            &[0xf9, 0, 0],                                           // a float
            &[0x00, 0x00],                                           // two items
            &deep,
            &deepest,
        ] {
            assert_eq!(read(bytes), Err(BadCbor), "{:02x?}", &bytes[..bytes.len().min(20)]);
        }
        assert!(read(&[[0x81; 4].as_slice(), &[0x00]].concat()).is_ok());
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
