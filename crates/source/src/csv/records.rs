//! Cutting CSV text into records and fields, without a copy where a field needs no unescaping.

use super::CsvOptions;

/// Where a field's text is.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    len: u32,
    quoted: bool,
    /// In [`Records::unescaped`] instead of the data.
    unescaped: bool,
}

/// Records of equally many fields.
#[derive(Debug, Default)]
pub(super) struct Records {
    spans: Vec<Span>,
    /// The line each record starts on.
    lines: Vec<u64>,
    /// Texts of fields that differ from what is in the file.
    unescaped: Vec<u8>,
    width: usize,
}

/// A field of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldText<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) quoted: bool,
    /// Where in the data the bytes are; `None` when they are not.
    pub(super) offset: Option<u32>,
}

/// What is wrong with a file, and on which line.
#[derive(Debug)]
pub(super) struct RecordError {
    pub(super) line: u64,
    pub(super) message: String,
}

impl Records {
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Fields per record.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The line that record `row` starts on.
    pub(super) fn line(&self, row: usize) -> u64 {
        self.lines[row]
    }

    /// Field `column` of record `row`; `data` is what was cut.
    pub(super) fn field<'a>(&'a self, data: &'a [u8], row: usize, column: usize) -> FieldText<'a> {
        let span = self.spans[row * self.width + column];
        let range = span.start as usize..(span.start + span.len) as usize;
        FieldText {
            bytes: if span.unescaped { &self.unescaped[range] } else { &data[range] },
            quoted: span.quoted,
            offset: (!span.unescaped).then_some(span.start),
        }
    }
}

/// Cuts data into records; remembers the line it is at.
#[derive(Debug)]
pub(super) struct RecordReader {
    delimiter: u8,
    quote: Option<u8>,
    escape: Option<u8>,
    comment: Option<u8>,
    /// Fields every record must have, once known.
    width: Option<usize>,
    line: u64,
    /// Whether a byte ends an unquoted field, or must be looked at.
    special: [bool; 256],
}

/// How far one record goes.
enum Cut {
    /// It ends before this position.
    Record(usize),
    /// A comment or an empty line does.
    Skipped(usize),
    /// More data is needed.
    Incomplete,
}

impl RecordReader {
    pub(super) fn new(options: &CsvOptions) -> Self {
        let mut special = [false; 256];
        for byte in [options.delimiter, b'\n', b'\r'] {
            special[usize::from(byte)] = true;
        }
        RecordReader {
            delimiter: options.delimiter,
            quote: options.quote,
            escape: options.escape.filter(|&e| Some(e) != options.quote),
            comment: options.comment,
            width: None,
            line: 1,
            special,
        }
    }

    /// Demands that every record has `width` fields.
    pub(super) fn expect_width(&mut self, width: usize) {
        self.width = Some(width);
    }

    /// At most `most` records from `data[start..]`, and where the next one starts. `at_end` says
    /// that nothing follows the data.
    pub(super) fn read(
        &mut self,
        data: &[u8],
        start: usize,
        at_end: bool,
        most: usize,
    ) -> Result<(Records, usize), RecordError> {
        let mut out = Records { width: self.width.unwrap_or(0), ..Records::default() };
        let mut position = start;
        while out.len() < most && position < data.len() {
            let (spans, unescaped, line) = (out.spans.len(), out.unescaped.len(), self.line);
            match self.record(data, position, at_end, &mut out)? {
                Cut::Record(next) => {
                    let found = out.spans.len() - spans;
                    let wanted = *self.width.get_or_insert(found);
                    if found != wanted {
                        let message = format!("{found} fields where {wanted} are expected");
                        return Err(RecordError { line, message });
                    }
                    out.width = wanted;
                    out.lines.push(line);
                    position = next;
                }
                Cut::Skipped(next) => position = next,
                Cut::Incomplete => {
                    out.spans.truncate(spans);
                    out.unescaped.truncate(unescaped);
                    self.line = line;
                    break;
                }
            }
        }
        Ok((out, position))
    }

    fn record(
        &mut self,
        data: &[u8],
        start: usize,
        at_end: bool,
        out: &mut Records,
    ) -> Result<Cut, RecordError> {
        if self.comment == Some(data[start]) {
            return Ok(match data[start..].iter().position(|&b| b == b'\n') {
                Some(length) => {
                    self.line += 1;
                    Cut::Skipped(start + length + 1)
                }
                None if at_end => Cut::Skipped(data.len()),
                None => Cut::Incomplete,
            });
        }
        if let Some(next) = self.line_end(data, start, at_end) {
            return Ok(next.map_or(Cut::Incomplete, Cut::Skipped));
        }
        let mut position = start;
        loop {
            let end = if self.quote.is_some() && data.get(position).copied() == self.quote {
                match self.quoted_field(data, position, at_end, out)? {
                    Some(end) => end,
                    None => return Ok(Cut::Incomplete),
                }
            } else {
                let end = self.plain_end(data, position);
                out.spans.push(Span {
                    start: position as u32,
                    len: (end - position) as u32,
                    quoted: false,
                    unescaped: false,
                });
                end
            };
            if end == data.len() {
                return Ok(if at_end { Cut::Record(end) } else { Cut::Incomplete });
            }
            if data[end] == self.delimiter {
                position = end + 1;
                if position == data.len() && !at_end {
                    return Ok(Cut::Incomplete);
                }
                continue;
            }
            return Ok(match self.line_end(data, end, at_end) {
                Some(Some(next)) => Cut::Record(next),
                _ => Cut::Incomplete,
            });
        }
    }

    /// Where the line after the line end at `at` starts; `None` when there is no line end there,
    /// `Some(None)` when the data ends inside of it.
    fn line_end(&mut self, data: &[u8], at: usize, at_end: bool) -> Option<Option<usize>> {
        let next = match data.get(at)? {
            b'\n' => at + 1,
            b'\r' => match data.get(at + 1) {
                Some(b'\n') => at + 2,
                Some(_) => at + 1,
                None if at_end => at + 1,
                None => return Some(None),
            },
            _ => return None,
        };
        self.line += 1;
        Some(Some(next))
    }

    fn plain_end(&self, data: &[u8], start: usize) -> usize {
        let rest = &data[start..];
        let length = rest.iter().position(|&b| self.special[usize::from(b)]);
        start + length.unwrap_or(rest.len())
    }

    /// The field that starts with the quote at `start`; where it ends, or `None` when the data
    /// ends first.
    fn quoted_field(
        &mut self,
        data: &[u8],
        start: usize,
        at_end: bool,
        out: &mut Records,
    ) -> Result<Option<usize>, RecordError> {
        let (quote, first_line) = (data[start], self.line);
        let text = start + 1;
        let mut position = text;
        let mut copied: Option<usize> = None;
        let mut copied_to = text;
        loop {
            let Some(&byte) = data.get(position) else {
                if at_end {
                    let message = "a quoted field does not end".to_owned();
                    return Err(RecordError { line: first_line, message });
                }
                return Ok(None);
            };
            let escapes = self.escape == Some(byte)
                || (byte == quote
                    && self.escape.is_none()
                    && data.get(position + 1) == Some(&quote));
            if escapes && position + 1 < data.len() {
                copied.get_or_insert(out.unescaped.len());
                out.unescaped.extend_from_slice(&data[copied_to..position]);
                copied_to = position + 1;
                self.line += u64::from(data[position + 1] == b'\n');
                position += 2;
                continue;
            }
            if byte == quote {
                if position + 1 == data.len() && !at_end {
                    return Ok(None);
                }
                break;
            }
            self.line += u64::from(byte == b'\n');
            position += 1;
        }
        let after = position + 1;
        let end = self.plain_end(data, after);
        // Text behind the closing quote belongs to the field.
        if end > after {
            copied.get_or_insert(out.unescaped.len());
        }
        let span = match copied {
            None => Span {
                start: text as u32,
                len: (position - text) as u32,
                quoted: true,
                unescaped: false,
            },
            Some(begin) => {
                out.unescaped.extend_from_slice(&data[copied_to..position]);
                out.unescaped.extend_from_slice(&data[after..end]);
                Span {
                    start: begin as u32,
                    len: (out.unescaped.len() - begin) as u32,
                    quoted: true,
                    unescaped: true,
                }
            }
        };
        out.spans.push(span);
        Ok(Some(end))
    }
}
