//! Random rows and expressions over them, from a seed.
#![allow(dead_code, reason = "each test file uses its part")]

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use planish_batch::Batch;
use planish_expr::PhysicalExprRef;
use planish_expr::expressions::{
    BetweenExpr, BinaryExpr, CaseExpr, CastExpr, CoalesceExpr, Column, InListExpr, IsBoolExpr,
    IsNullExpr, NegativeExpr, NotExpr, TryCastExpr, lit,
};
use std::sync::Arc;

type Expr = PhysicalExprRef;

const ROWS: usize = 9;

/// xorshift64*, by Vigna, "An experimental exploration of Marsaglia's xorshift generators".
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// The types of numbers.
const NUMBERS: [DataType; 3] = [DataType::Int64, DataType::Int8, DataType::Float64];

/// Two columns of each type of numbers and one of truth values; all have NULLs.
pub(crate) fn input() -> SchemaRef {
    let names = ["a", "b", "c", "d", "e", "f"];
    let number = |(i, n): (usize, &&str)| Field::new(*n, NUMBERS[i / 2].clone(), true);
    let mut fields: Vec<_> = names.iter().enumerate().map(number).collect();
    fields.push(Field::new("t", DataType::Boolean, true));
    Arc::new(Schema::new(fields))
}

/// Small numbers, and in some columns the extremes of the type.
pub(crate) fn rows(r: &mut Random) -> Batch {
    let mut columns: Vec<ArrayRef> = vec![];
    for data_type in NUMBERS.iter().flat_map(|t| [t, t]) {
        let wild = r.below(5) == 0;
        let values = (0..ROWS).map(|_| {
            if r.below(5) == 0 {
                ScalarValue::try_new_null(data_type).unwrap()
            } else if wild && r.below(3) == 0 {
                extreme(r, data_type)
            } else {
                small(data_type, r.below(7) as i8 - 3)
            }
        });
        columns.push(ScalarValue::iter_to_array(values.collect::<Vec<_>>()).unwrap());
    }
    let truth = |_| (r.below(4) > 0).then(|| r.below(2) == 0);
    columns.push(Arc::new((0..ROWS).map(truth).collect::<BooleanArray>()));
    Batch::from_arrays(input(), columns, ROWS).unwrap()
}

fn small(data_type: &DataType, n: i8) -> ScalarValue {
    match data_type {
        DataType::Int64 => ScalarValue::from(i64::from(n)),
        DataType::Int8 => ScalarValue::from(n),
        _ => ScalarValue::from(f64::from(n) / 2.0),
    }
}

fn extreme(r: &mut Random, data_type: &DataType) -> ScalarValue {
    match data_type {
        DataType::Int64 => ScalarValue::from(*r.pick(&[i64::MIN, i64::MAX])),
        DataType::Int8 => ScalarValue::from(*r.pick(&[i8::MIN, i8::MAX])),
        _ => {
            let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MAX, f64::MIN];
            ScalarValue::from(*r.pick(&values))
        }
    }
}

/// What to generate.
pub(crate) struct Expressions<'a> {
    /// The columns there are.
    pub(crate) schema: &'a Schema,
    /// Whether there are nodes that end in an error on some rows.
    pub(crate) failing: bool,
}

impl Expressions<'_> {
    /// A condition, or a number of any type.
    pub(crate) fn any(&self, r: &mut Random) -> Expr {
        if r.below(2) == 0 { self.truth(r, 2) } else { self.number(r, 2) }
    }

    /// A number of any type.
    pub(crate) fn number(&self, r: &mut Random, depth: usize) -> Expr {
        let wanted = r.pick(&NUMBERS).clone();
        self.of(r, &wanted, depth)
    }

    /// An expression of type `wanted`.
    pub(crate) fn of(&self, r: &mut Random, wanted: &DataType, depth: usize) -> Expr {
        if depth == 0 || r.below(5) == 0 {
            self.leaf(r, wanted)
        } else if *wanted == DataType::Boolean {
            self.truth(r, depth - 1)
        } else {
            self.computed(r, wanted, depth - 1)
        }
    }

    fn leaf(&self, r: &mut Random, wanted: &DataType) -> Expr {
        let fits = |i: &usize| self.schema.field(*i).data_type() == wanted;
        let columns: Vec<usize> = (0..self.schema.fields().len()).filter(fits).collect();
        if columns.is_empty() || r.below(5) == 0 {
            return match (wanted, r.below(6)) {
                (_, 0) => lit(ScalarValue::try_new_null(wanted).unwrap()),
                (DataType::Boolean, n) => lit(n % 2 == 0),
                (_, n) => lit(small(wanted, n as i8 - 2)),
            };
        }
        let i = *r.pick(&columns);
        Arc::new(Column::new(self.schema.field(i).name(), i))
    }

    fn computed(&self, r: &mut Random, wanted: &DataType, depth: usize) -> Expr {
        use Operator::{Divide, Minus, Multiply, Plus};
        let next = |r: &mut Random| self.of(r, wanted, depth);
        match r.below(7) {
            0 => Arc::new(NegativeExpr::new(next(r))),
            1 => self.cast(r, wanted, depth),
            2 => Arc::new(CoalesceExpr::try_new(vec![next(r), next(r)]).unwrap()),
            3 => {
                let branch = vec![(self.of(r, &DataType::Boolean, depth), next(r))];
                let otherwise = (r.below(2) == 0).then(|| next(r));
                Arc::new(CaseExpr::try_new(None, branch, otherwise).unwrap())
            }
            _ => {
                let ops = [Plus, Minus, Multiply, Divide];
                let op = *r.pick(if self.failing { &ops } else { &ops[..3] });
                Arc::new(BinaryExpr::new(next(r), op, next(r)))
            }
        }
    }

    fn cast(&self, r: &mut Random, wanted: &DataType, depth: usize) -> Expr {
        let narrow = *wanted == DataType::Int8;
        let from = if narrow { DataType::Boolean } else { DataType::Int8 };
        if !self.failing {
            return Arc::new(CastExpr::new(self.of(r, &from, depth), wanted.clone()));
        }
        let from = self.number(r, depth);
        if r.below(2) == 0 {
            Arc::new(TryCastExpr::new(from, wanted.clone()))
        } else {
            Arc::new(CastExpr::new(from, wanted.clone()))
        }
    }

    /// A condition.
    pub(crate) fn truth(&self, r: &mut Random, depth: usize) -> Expr {
        use Operator::{And, Eq, Gt, GtEq, IsDistinctFrom, Lt, LtEq, NotEq, Or};
        let condition = |r: &mut Random| self.of(r, &DataType::Boolean, depth);
        let wanted = r.pick(&NUMBERS).clone();
        let next = |r: &mut Random| self.of(r, &wanted, depth);
        let negated = r.below(2) == 0;
        match r.below(8) {
            0 => Arc::new(NotExpr::new(condition(r))),
            1 if negated => Arc::new(IsNullExpr::is_not_null(next(r))),
            1 => Arc::new(IsNullExpr::is_null(next(r))),
            2 => Arc::new(BetweenExpr::new(next(r), negated, next(r), next(r))),
            3 => {
                let list = vec![lit(small(&wanted, 1)), lit(small(&wanted, -1)), next(r)];
                Arc::new(InListExpr::new(next(r), list, negated))
            }
            4 => Arc::new(IsBoolExpr::new(condition(r), r.below(2) == 0, negated)),
            5 => {
                let op = *r.pick(&[And, Or]);
                Arc::new(BinaryExpr::new(condition(r), op, condition(r)))
            }
            _ => {
                let op = *r.pick(&[Eq, NotEq, Lt, LtEq, Gt, GtEq, IsDistinctFrom]);
                Arc::new(BinaryExpr::new(next(r), op, next(r)))
            }
        }
    }
}
