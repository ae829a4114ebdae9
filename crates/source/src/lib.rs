//! STUB of `planish-source`.
#![allow(missing_docs)]
use arrow::datatypes::SchemaRef;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, not_impl_err};
use planish_expr::LexOrdering;
use planish_plan::PlanRef;
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileFormat {
    Parquet,
    Csv,
}
impl std::fmt::Display for FileFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}
impl FileFormat {
    pub fn by_name(_: &str) -> Result<FileFormat> {
        Ok(FileFormat::Csv)
    }
}
#[derive(Clone, Debug, Default)]
pub struct CsvOptions {
    pub delimiter: u8,
    pub quote: Option<u8>,
    pub escape: Option<u8>,
    pub comment: Option<u8>,
    pub has_header: bool,
    pub null_value: Option<String>,
    pub infer_records: usize,
}
#[derive(Clone, Debug, Default)]
pub struct FileFormatOptions {
    pub format: Option<FileFormat>,
    pub csv: CsvOptions,
    pub schema: Option<SchemaRef>,
    pub orderings: Vec<LexOrdering>,
}
#[derive(Debug)]
pub struct FileTable {
    schema: SchemaRef,
}
impl FileTable {
    pub async fn try_new(paths: Vec<String>, _: FileFormatOptions) -> Result<FileTable> {
        not_impl_err!("{paths:?}")
    }
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
    pub fn scan(&self, _: Option<&[usize]>, _: &ConfigOptions) -> Result<PlanRef> {
        not_impl_err!("")
    }
}
