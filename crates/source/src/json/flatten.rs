//! From one array of records to records one after the other.

use bytes::Bytes;

/// Blanks out the brackets and commas of a top-level array; text that is no array stays as it is.
#[derive(Debug, Default)]
pub(super) struct Flattener {
    /// Whether the text is an array, once its first character was seen.
    array: Option<bool>,
    /// Open brackets and braces.
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Flattener {
    /// The next block of the text, of the same length.
    pub(super) fn next(&mut self, block: Bytes) -> Bytes {
        if self.array.is_none() {
            let mark = block.strip_prefix(&[0xEF, 0xBB, 0xBF][..]);
            let text = mark.unwrap_or(&block);
            let Some(first) = text.iter().find(|byte| !byte.is_ascii_whitespace()) else {
                return Bytes::from(vec![b' '; block.len()]);
            };
            self.array = Some(*first == b'[');
            if mark.is_some() {
                let mut blank = block.to_vec();
                blank[..3].fill(b' ');
                return self.next(Bytes::from(blank));
            }
        }
        if self.array != Some(true) {
            return block;
        }
        let mut text = block.to_vec();
        text.iter_mut().for_each(|byte| self.byte(byte));
        Bytes::from(text)
    }

    fn byte(&mut self, byte: &mut u8) {
        if self.in_string {
            match *byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match *byte {
            b'"' => self.in_string = true,
            b'[' | b'{' => {
                self.depth += 1;
                if self.depth == 1 {
                    *byte = b' ';
                }
            }
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    *byte = b' ';
                }
            }
            b',' if self.depth == 1 => *byte = b' ',
            _ => {}
        }
    }

    /// Whether an array was not closed.
    pub(super) fn is_open(&self) -> bool {
        self.array == Some(true) && self.depth > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &str, block: usize) -> String {
        let mut flattener = Flattener::default();
        let blocks = text.as_bytes().chunks(block);
        let flat: Vec<u8> =
            blocks.flat_map(|b| flattener.next(Bytes::copy_from_slice(b)).to_vec()).collect();
        assert!(!flattener.is_open());
        String::from_utf8(flat).unwrap()
    }

    #[test]
    fn only_the_outermost_array_goes() {
        let text = r#" [{"a": [1, 2], "b": "x, ]\" ["}, {"a": []}]"#;
        for block in [1, 2, 7, 100] {
            assert_eq!(flat(text, block), r#"  {"a": [1, 2], "b": "x, ]\" ["}  {"a": []} "#);
        }
        for text in ["{\"a\": [1]}\n{\"a\": []}", "", "  "] {
            assert_eq!(flat(text, 3), text);
        }
    }

    #[test]
    fn an_array_that_is_cut_off_shows() {
        let mut flattener = Flattener::default();
        flattener.next(Bytes::from_static(b"[{\"a\": 1},"));
        assert!(flattener.is_open());
    }
}
