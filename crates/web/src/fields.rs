//! Which fields a form may have: asked of the type that reads it, so that the answer cannot be another.

use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use serde::forward_to_deserialize_any;

/// The names of a struct's fields, as `serde` reads them; `None` where it has no list of them, as with
/// a flattened one.
pub(crate) fn of<T: DeserializeOwned>() -> Option<&'static [&'static str]> {
    let mut names = None;
    // The probe never gives a value: what it is asked for is all that is wanted.
    drop(T::deserialize(Probe(&mut names)));
    names
}

struct Probe<'a>(&'a mut Option<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("only a struct has fields"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = Some(fields);
        Err(de::Error::custom("asked for its fields alone"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[test]
    fn a_struct_tells_its_fields() {
        #[derive(Deserialize)]
        #[expect(dead_code, reason = "only its fields' names are asked for")]
        struct Input {
            #[serde(default)]
            name: String,
            #[serde(rename = "from")]
            start: Option<String>,
        }
        assert_eq!(super::of::<Input>(), Some(&["name", "from"][..]));
        assert_eq!(super::of::<Vec<String>>(), None);
    }
}
