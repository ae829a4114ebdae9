//! `LIKE`, `ILIKE` and `SIMILAR TO`.

use super::display::{Precedence, operand};
use super::kernels::{apply_binary, apply_unary, regex_compiles, regex_match};
use super::{Literal, encoded_operand, exactly, or_empty};
use crate::{PhysicalExpr, PhysicalExprRef, structural_eq};
use arrow::array::{AsArray, StringArray};
use arrow::compute::cast;
use arrow::compute::kernels::comparison::{ilike, like, nilike, nlike};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion_common::{Result, exec_err};
use datafusion_expr::ColumnarValue;
use planish_batch::Batch;
use std::fmt;
use std::sync::Arc;

/// The kind of pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LikeKind {
    /// `%` and `_`.
    Like,
    /// As [`Self::Like`], without regard to case.
    ILike,
    /// `%`, `_` and the operators of regular expressions, over the whole text.
    SimilarTo,
}

/// `expr [NOT] LIKE pattern [ESCAPE c]`, and its relatives.
#[derive(Clone, Debug)]
pub struct LikeExpr {
    kind: LikeKind,
    negated: bool,
    expr: PhysicalExprRef,
    pattern: PhysicalExprRef,
    escape: char,
}

structural_eq!(LikeExpr { kind, negated, expr, pattern, escape });

impl LikeExpr {
    /// `expr [NOT] kind pattern`, with the escape character `\`.
    pub fn new(
        kind: LikeKind,
        negated: bool,
        expr: PhysicalExprRef,
        pattern: PhysicalExprRef,
    ) -> Self {
        LikeExpr { kind, negated, expr, pattern, escape: '\\' }
    }

    /// The same with another escape character.
    #[must_use]
    pub fn with_escape(mut self, escape: char) -> Self {
        self.escape = escape;
        self
    }

    /// The kind of pattern.
    pub fn kind(&self) -> LikeKind {
        self.kind
    }

    /// Whether this is `NOT LIKE`.
    pub fn negated(&self) -> bool {
        self.negated
    }

    /// The text.
    pub fn expr(&self) -> &PhysicalExprRef {
        &self.expr
    }

    /// The pattern.
    pub fn pattern(&self) -> &PhysicalExprRef {
        &self.pattern
    }

    /// The escape character.
    pub fn escape(&self) -> char {
        self.escape
    }

    fn apply(&self, batch: &Batch) -> Result<ColumnarValue> {
        let text = encoded_operand(&self.expr, batch)?;
        let pattern = self.pattern.evaluate(batch)?;
        if self.kind == LikeKind::SimilarTo {
            let regex = map_patterns(&pattern, |p| similar_to_regex(p, self.escape))?;
            return regex_match(&text, &regex, false, self.negated);
        }
        let pattern = if self.escape == '\\' {
            pattern
        } else {
            map_patterns(&pattern, |p| with_backslashes(p, self.escape))?
        };
        let kernel = match (self.kind == LikeKind::ILike, self.negated) {
            (false, false) => like,
            (false, true) => nlike,
            (true, false) => ilike,
            (true, true) => nilike,
        };
        apply_binary(&text, &pattern, |text, pattern| Ok(Arc::new(kernel(text, pattern)?)))
    }
}

/// `patterns`, each rewritten by `f`, in their own type.
fn map_patterns(
    patterns: &ColumnarValue,
    f: impl Fn(&str) -> Result<String>,
) -> Result<ColumnarValue> {
    apply_unary(patterns, |array| {
        let strings = cast(array, &DataType::Utf8)?;
        let mapped = strings
            .as_string::<i32>()
            .iter()
            .map(|pattern| pattern.map(&f).transpose())
            .collect::<Result<StringArray>>()?;
        Ok(cast(&mapped, array.data_type())?)
    })
}

/// A `LIKE` pattern with another escape character, as one with backslashes.
fn with_backslashes(pattern: &str, escape: char) -> Result<String> {
    let mut out = String::with_capacity(pattern.len() + 2);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let literal = if c == escape {
            match chars.next() {
                Some(next) => next,
                None => {
                    return exec_err!("LIKE pattern '{pattern}' ends with its escape character");
                }
            }
        } else if c == '\\' {
            c
        } else {
            out.push(c);
            continue;
        };
        if matches!(literal, '%' | '_' | '\\') {
            out.push('\\');
        }
        out.push(literal);
    }
    Ok(out)
}

/// A `SIMILAR TO` pattern as a regular expression over the whole text.
///
/// # Errors
/// When the pattern ends with its escape character.
pub fn similar_to_regex(pattern: &str, escape: char) -> Result<String> {
    let mut out = String::with_capacity(pattern.len() + 12);
    out.push_str("^(?s:");
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        if c == escape {
            match chars.next() {
                Some(next) => push_literal(&mut out, next),
                None => {
                    return exec_err!(
                        "SIMILAR TO pattern '{pattern}' ends with its escape character"
                    );
                }
            }
            continue;
        }
        match c {
            ']' if in_class => {
                in_class = false;
                out.push(c);
            }
            '^' | '-' if in_class => out.push(c),
            _ if in_class => push_literal(&mut out, c),
            '[' => {
                in_class = true;
                out.push(c);
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => out.push(c),
            ',' => out.push(c),
            _ => push_literal(&mut out, c),
        }
    }
    out.push_str(")$");
    Ok(out)
}

fn push_literal(out: &mut String, c: char) {
    if c.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(c);
}

impl fmt::Display for LikeExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = if self.negated { "NOT " } else { "" };
        let kind = match self.kind {
            LikeKind::Like => "LIKE",
            LikeKind::ILike => "ILIKE",
            LikeKind::SimilarTo => "SIMILAR TO",
        };
        let side = |e| operand(e, Precedence::TEST.next());
        write!(f, "{} {not}{kind} {}", side(&self.expr), side(&self.pattern))?;
        if self.escape != '\\' {
            write!(f, " ESCAPE {}", self.escape)?;
        }
        Ok(())
    }
}

impl PhysicalExpr for LikeExpr {
    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        let nullable = self.expr.nullable(input_schema)? || self.pattern.nullable(input_schema)?;
        Ok(Arc::new(Field::new("like", DataType::Boolean, nullable)))
    }

    fn evaluate(&self, batch: &Batch) -> Result<ColumnarValue> {
        or_empty(self.apply(batch), self, batch)
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.expr, &self.pattern]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        let [expr, pattern] = exactly(children)?;
        Ok(Arc::new(LikeExpr { expr, pattern, ..self.as_ref().clone() }))
    }

    fn can_fail_node(&self, _: &Schema) -> bool {
        let Some(literal) = self.pattern.downcast_ref::<Literal>() else { return true };
        match literal.value().try_as_str() {
            Some(Some(pattern)) => match self.kind {
                LikeKind::SimilarTo => !similar_to_regex(pattern, self.escape)
                    .is_ok_and(|regex| regex_compiles(&regex, false)),
                _ => self.escape != '\\' && with_backslashes(pattern, self.escape).is_err(),
            },
            Some(None) => false,
            None => !literal.value().is_null(),
        }
    }
}
