//! Small changes to a parsed statement, before the front end binds it.

use datafusion_common::{DataFusionError, Result, not_impl_err};
use datafusion_sql::parser::Statement as DFStatement;
use datafusion_sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Ident, Select, SelectItem, Statement, Value,
    VisitMut, VisitorMut,
};
use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Refuses statements of kinds that are not supported, before anything in them is looked up.
pub(crate) fn supported(statement: &DFStatement) -> Result<()> {
    let name = match statement {
        DFStatement::CopyTo(_) => "COPY",
        DFStatement::Explain(explain) => return supported(&explain.statement),
        DFStatement::Statement(statement) => match statement.as_ref() {
            Statement::Insert(_) => "INSERT",
            Statement::Update(_) => "UPDATE",
            Statement::Delete(_) => "DELETE",
            Statement::Merge(_) => "MERGE",
            Statement::Truncate(_) => "TRUNCATE",
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    not_impl_err!("{name} is not supported yet")
}

fn visit<V: VisitorMut<Break = Infallible>>(statement: &mut DFStatement, visitor: &mut V) {
    match statement {
        DFStatement::Statement(statement) => {
            let _ = statement.visit(visitor);
        }
        DFStatement::Explain(explain) => visit(&mut explain.statement, visitor),
        _ => {}
    }
}

/// Makes numbers with an exponent doubles, as PostgreSQL and DuckDB do, where the binder would
/// read them, like other fractions, as decimals (of a negative scale).
pub(crate) fn exponents_are_doubles(statement: &mut DFStatement) {
    visit(statement, &mut Exponents);
}

struct Exponents;

impl VisitorMut for Exponents {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Value(number) = expr
            && let Value::Number(digits, _) = &number.value
            && digits.contains(['e', 'E'])
        {
            let mut text = number.clone();
            text.value = Value::SingleQuotedString(digits.replace('_', ""));
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(text)),
                data_type: DataType::Double(ExactNumberInfo::None),
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }
}

/// Whether the binder refused a statement because two columns of a SELECT list have one name,
/// which SQL allows (and the binder's names are coarse: `1 + 2 * 3` and `(1 + 2) * 3` share one).
pub(crate) fn is_repeated_name(error: &DataFusionError) -> bool {
    error.to_string().contains("Projections require unique expression names")
}

/// Names the columns of all SELECT lists: expressions by their text, repeated names with a
/// number (`a`, `a_1`).
pub(crate) fn name_columns(statement: &mut DFStatement) {
    visit(statement, &mut ColumnNames);
}

struct ColumnNames;

impl VisitorMut for ColumnNames {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let wildcard = |item: &SelectItem| {
            matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
        };
        let with_wildcard = select.projection.iter().any(wildcard);
        let mut taken = HashSet::new();
        for item in &mut select.projection {
            let (name, is_column) = match &*item {
                SelectItem::UnnamedExpr(Expr::Identifier(ident)) => (ident.value.clone(), true),
                SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                    (parts.last().map_or_else(String::new, |ident| ident.value.clone()), true)
                }
                SelectItem::UnnamedExpr(expr) => (expr.to_string(), false),
                SelectItem::ExprWithAlias { alias, .. } => (alias.value.clone(), true),
                _ => continue,
            };
            // What a wildcard stands for is not known here: a column beside it may repeat.
            let repeats = !taken.insert(name.clone()) || (with_wildcard && is_column);
            if !repeats && is_column {
                continue;
            }
            let unique = if repeats { numbered(&name, &mut taken) } else { name };
            let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = &*item
            else {
                continue;
            };
            let (expr, alias) = (expr.clone(), Ident::with_quote('"', unique));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
        ControlFlow::Continue(())
    }
}

fn numbered(name: &str, taken: &mut HashSet<String>) -> String {
    let mut number = 1;
    loop {
        let candidate = format!("{name}_{number}");
        if taken.insert(candidate.clone()) {
            return candidate;
        }
        number += 1;
    }
}
