//! The SQL dialects: the parser's own, by name, and "generic" with lambdas (`x -> x + 1`).

use datafusion_common::config::Dialect as DialectName;
use datafusion_common::{DataFusionError, Result};
use datafusion_sql::sqlparser::dialect::{Dialect, GenericDialect, dialect_from_str};
use std::any::TypeId;

/// The dialect that the option `datafusion.sql_parser.dialect` names.
pub(crate) fn dialect_named(name: DialectName) -> Result<Box<dyn Dialect>> {
    if name == DialectName::Generic {
        return Ok(Box::new(GenericWithLambdas));
    }
    dialect_from_str(name)
        .ok_or_else(|| DataFusionError::Plan(format!("unknown SQL dialect {name}")))
}

/// The parser's generic dialect, in which an arrow after a name starts a lambda, as in DuckDB.
#[derive(Debug)]
struct GenericWithLambdas;

/// Methods that answer as the generic dialect does.
macro_rules! as_generic {
    ($($method:ident),+ $(,)?) => {
        $(fn $method(&self) -> bool {
            GenericDialect.$method()
        })+
    };
}

impl Dialect for GenericWithLambdas {
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn supports_lambda_functions(&self) -> bool {
        true
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        GenericDialect.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        GenericDialect.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        GenericDialect.is_identifier_part(ch)
    }

    // What the generic dialect says otherwise than a dialect does by default.
    as_generic!(
        supports_unicode_string_literal,
        supports_partition_by_after_order_by,
        supports_array_join_syntax,
        supports_group_by_expr,
        supports_group_by_with_modifier,
        supports_left_associative_joins_without_parens,
        supports_connect_by,
        supports_match_recognize,
        supports_pipe_operator,
        supports_start_transaction_modifier,
        supports_window_function_null_treatment_arg,
        supports_dictionary_syntax,
        supports_window_clause_named_window_reference,
        supports_parenthesized_set_variables,
        supports_select_wildcard_except,
        support_map_literal_syntax,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_extract_comma_syntax,
        supports_create_view_comment_syntax,
        supports_parens_around_table_factor,
        supports_values_as_table_factor,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_limit_comma,
        supports_update_order_by,
        supports_from_first_select,
        supports_projection_trailing_commas,
        supports_asc_desc_in_column_definition,
        supports_try_convert,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_assignment_operator,
        supports_struct_literal,
        supports_empty_projections,
        supports_nested_comments,
        supports_multiline_comment_hints,
        supports_user_host_grantee,
        supports_string_escape_constant,
        supports_array_typedef_with_brackets,
        supports_match_against,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_filter_during_aggregation,
        supports_select_wildcard_exclude,
        supports_data_type_signed_suffix,
        supports_interval_options,
        supports_quote_delimited_string,
        supports_select_wildcard_replace,
        supports_select_wildcard_ilike,
        supports_select_wildcard_rename,
        supports_optimize_table,
        supports_install,
        supports_detach,
        supports_prewhere,
        supports_with_fill,
        supports_limit_by,
        supports_interpolate,
        supports_settings,
        supports_select_format,
        supports_comment_optimizer_hint,
        supports_constraint_keyword_without_name,
        supports_key_column_option,
        supports_comma_separated_trim,
        supports_cte_without_as,
        supports_select_item_multi_column_alias,
        supports_xml_expressions,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion_sql::sqlparser::parser::Parser;

    #[test]
    fn what_the_generic_dialect_reads_is_read_in_the_same_way() {
        let generic = [
            "SELECT * EXCLUDE (a) FROM t",
            "FROM t SELECT a",
            "SELECT MAP {'a': 1}",
            "SELECT a FROM t GROUP BY GROUPING SETS ((a), ())",
            "SELECT sum(a) FILTER (WHERE b) FROM t",
            "SELECT U&'\\00e9', E'\\n'",
            "SELECT a << 2 /* in /* nested */ */ FROM (VALUES (1)) t(a) LIMIT 1, 2",
            "SELECT first_value(a IGNORE NULLS) OVER w FROM t WINDOW w AS (ORDER BY a)",
        ];
        for sql in generic {
            let expected = Parser::parse_sql(&GenericDialect, sql).unwrap();
            assert_eq!(Parser::parse_sql(&GenericWithLambdas, sql).unwrap(), expected, "{sql}");
        }
    }

    #[test]
    fn lambdas_are_read() {
        for sql in ["SELECT f(a, x -> x + 1)", "SELECT f(a, (x, i) -> x + i)"] {
            assert_eq!(Parser::parse_sql(&GenericWithLambdas, sql).unwrap()[0].to_string(), sql);
        }
        Parser::parse_sql(&GenericWithLambdas, "SELECT f(a, lambda x: x + 1)").unwrap();
    }
}
