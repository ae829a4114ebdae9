//! Cuts SQL text into statements as it arrives.

/// A statement and the line of the script on which it begins (the first is 1).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Statement {
    /// The text, without the `;`, without white space and comments around it.
    pub(crate) sql: String,
    /// The line of its first character.
    pub(crate) line: usize,
}

/// What the reader is inside of.
#[derive(Clone, Debug, Eq, PartialEq)]
enum State {
    Code,
    /// A string or a quoted identifier; ends at this character, which doubles as its escape.
    Quoted(char),
    /// `E'...'`, where a backslash takes the next character along.
    Escaped,
    LineComment,
    /// `/* */`, which nests; the depth.
    BlockComment(usize),
    /// `$tag$ ... $tag$`; the delimiter.
    Dollar(String),
}

/// Cuts a script at every `;` outside of quotes and comments.
///
/// Text comes in pieces; a piece ends at the end of a line or of the script, so that no token is
/// split between two pieces.
#[derive(Debug)]
pub(crate) struct Splitter {
    state: State,
    text: String,
    /// Where the first character of the statement that is no white space or comment is.
    start: Option<(usize, usize)>,
    /// Just past the last one.
    end: usize,
    line: usize,
}

impl Default for Splitter {
    fn default() -> Self {
        Splitter { state: State::Code, text: String::new(), start: None, end: 0, line: 1 }
    }
}

impl Splitter {
    /// Takes the next piece and returns the statements that it completes.
    pub(crate) fn push(&mut self, piece: &str) -> Vec<Statement> {
        let mut done = vec![];
        let mut rest = piece;
        while let Some(c) = rest.chars().next() {
            let length = self.step(rest, c, &mut done);
            rest = &rest[length..];
        }
        done
    }

    /// The last statement, which needs no `;`.
    pub(crate) fn finish(&mut self) -> Option<Statement> {
        let last = self.take();
        *self = Splitter::default();
        last
    }

    /// Whether nothing but white space and comments has come since the last statement.
    pub(crate) fn is_empty(&self) -> bool {
        self.start.is_none()
    }

    /// Consumes one token at the start of `rest`, whose first character is `c`.
    fn step(&mut self, rest: &str, c: char, done: &mut Vec<Statement>) -> usize {
        let one = c.len_utf8();
        let (state, length) = match &self.state {
            State::Code => return self.step_code(rest, c, done),
            State::Quoted(quote) if c == *quote => (State::Code, one),
            State::Escaped if rest.starts_with("''") => (State::Escaped, 2),
            State::Escaped if c == '\'' => (State::Code, one),
            State::Escaped if c == '\\' => {
                let next = rest[one..].chars().next().map_or(0, char::len_utf8);
                (State::Escaped, one + next)
            }
            State::LineComment if c == '\n' => (State::Code, one),
            State::BlockComment(depth) if rest.starts_with("/*") => {
                (State::BlockComment(depth + 1), 2)
            }
            State::BlockComment(depth) if rest.starts_with("*/") => match depth {
                1 => (State::Code, 2),
                _ => (State::BlockComment(depth - 1), 2),
            },
            State::Dollar(tag) if rest.starts_with(tag.as_str()) => (State::Code, tag.len()),
            state => (state.clone(), one),
        };
        let comment = matches!(self.state, State::LineComment | State::BlockComment(_));
        self.state = state;
        self.keep(&rest[..length], !comment);
        length
    }

    fn step_code(&mut self, rest: &str, c: char, done: &mut Vec<Statement>) -> usize {
        if c == ';' {
            done.extend(self.take());
            return 1;
        }
        let in_word = self.text.ends_with(|p: char| p.is_alphanumeric() || p == '_' || p == '$');
        let (state, length) = match c {
            '\'' if self.after_escape_prefix() => (State::Escaped, 1),
            '\'' | '"' | '`' => (State::Quoted(c), 1),
            '-' if rest.starts_with("--") => (State::LineComment, 2),
            '/' if rest.starts_with("/*") => (State::BlockComment(1), 2),
            '$' if !in_word => match dollar_tag(rest) {
                Some(tag) => (State::Dollar(tag.to_owned()), tag.len()),
                None => (State::Code, 1),
            },
            _ => (State::Code, c.len_utf8()),
        };
        let visible = match state {
            State::LineComment | State::BlockComment(_) => false,
            _ => !c.is_whitespace(),
        };
        self.state = state;
        self.keep(&rest[..length], visible);
        length
    }

    /// Whether the text ends with the `E` of `E'...'`.
    fn after_escape_prefix(&self) -> bool {
        let mut back = self.text.chars().rev();
        matches!(back.next(), Some('e' | 'E'))
            && !back.next().is_some_and(|c| c.is_alphanumeric() || c == '_')
    }

    fn keep(&mut self, token: &str, visible: bool) {
        if visible {
            self.start.get_or_insert((self.text.len(), self.line));
        }
        self.text.push_str(token);
        self.line += token.matches('\n').count();
        if visible {
            self.end = self.text.len();
        }
    }

    fn take(&mut self) -> Option<Statement> {
        let text = std::mem::take(&mut self.text);
        let (start, line) = self.start.take()?;
        Some(Statement { sql: text[start..self.end].to_owned(), line })
    }
}

/// The opening `$$` or `$tag$` at the start of `text`. `$1` is a placeholder.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 1;
    let tag = &text[1..end];
    let word = tag.chars().all(|c| c.is_alphanumeric() || c == '_');
    let digit = tag.starts_with(|c: char| c.is_ascii_digit());
    (word && !digit).then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut splitter = Splitter::default();
        let mut all: Vec<_> = text.split_inclusive('\n').flat_map(|l| splitter.push(l)).collect();
        all.extend(splitter.finish());
        all.into_iter().map(|s| s.sql).collect()
    }

    #[test]
    fn cuts_at_semicolons() {
        assert_eq!(split("a; b ;\n c"), ["a", "b", "c"]);
        assert_eq!(split(";;a;;"), ["a"]);
        assert_eq!(split(" \n\t"), [""; 0]);
    }

    #[test]
    fn not_inside_quotes() {
        for text in [
            "'a;b'",
            "'it''s;'",
            "\"a;b\"",
            "`a;b`",
            r"E'it\'s;'",
            r"E'''\';'",
            "$$a;b$$",
            "$x$a$$;$x$",
        ] {
            assert_eq!(split(&format!("{text}; z")), [text, "z"]);
        }
        // A backslash escapes nothing in a plain string, and `$1;$2` holds no quote.
        assert_eq!(split(r"'\'; z"), [r"'\'", "z"]);
        assert_eq!(split(r"nice'\'; z"), [r"nice'\'", "z"]);
        assert_eq!(split("$1; $2; a$b$; c$b$"), ["$1", "$2", "a$b$", "c$b$"]);
        assert_eq!(split("'ünï;cödé'; 'z\n;'"), ["'ünï;cödé'", "'z\n;'"]);
    }

    #[test]
    fn not_inside_comments() {
        assert_eq!(split("-- a; b\nc -- d;\n; e"), ["c", "e"]);
        assert_eq!(split("/* a; /* b; */ c; */ d; -- the end"), ["d"]);
        assert_eq!(split("a /* ; */ + b - c / d"), ["a /* ; */ + b - c / d"]);
        assert_eq!(split("-- only a comment"), [""; 0]);
        assert_eq!(split("'-- ;'; '/*'; b"), ["'-- ;'", "'/*'", "b"]);
    }

    #[test]
    fn keeps_what_is_not_closed() {
        assert_eq!(split("a; 'b; c"), ["a", "'b; c"]);
    }

    #[test]
    fn tells_the_line() {
        let mut splitter = Splitter::default();
        let found: Vec<_> = "a;\n-- x\n\n  b\n;c\n;".split_inclusive('\n').collect();
        let lines: Vec<_> =
            found.into_iter().flat_map(|l| splitter.push(l)).map(|s| (s.sql, s.line)).collect();
        assert_eq!(lines, [("a".to_owned(), 1), ("b".to_owned(), 4), ("c".to_owned(), 5)]);
        assert!(splitter.is_empty());
    }
}
