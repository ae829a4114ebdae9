//! Files of an object store.

use crate::common::*;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use planish_source::bytes::FileVersion;
use planish_source::{FileFormat, FileTable, ListedFiles, ObjectByteSource, SourceFile};
use std::sync::Arc;
use tempfile::tempdir;

async fn stored(store: &Arc<InMemory>, name: &str, bytes: Vec<u8>) -> Arc<SourceFile> {
    let size = bytes.len() as u64;
    let location = Path::from(name);
    store.put(&location, bytes.into()).await.unwrap();
    let store: Arc<dyn ObjectStore> = Arc::clone(store) as _;
    let source = ObjectByteSource::new(store, location, format!("memory://{name}"));
    Arc::new(SourceFile::new(Arc::new(source), FileVersion { size, modified_nanos: 0 }))
}

#[tokio::test]
async fn parquet_and_csv_objects_are_read_by_ranges() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    write_parquet(&path, &[sample(0, 1000)], 100);
    let store = Arc::new(InMemory::new());
    let file = stored(&store, "t.parquet", std::fs::read(&path).unwrap()).await;
    let listed = ListedFiles { files: vec![file], format: FileFormat::Parquet };
    let table =
        FileTable::try_new_with_files(vec!["memory://t.parquet".to_owned()], listed, cached())
            .await
            .unwrap();
    let options = options(1, 64);
    let plan = table.scan(Some(&[3, 0]), &options).unwrap();
    let local = crate::common::table(&path).await.unwrap().scan(Some(&[3, 0]), &options).unwrap();
    assert_eq!(run(&plan, &options).await.unwrap(), run(&local, &options).await.unwrap());

    let file = stored(&store, "t.csv", b"a,b\n1,x\n".to_vec()).await;
    let listed = ListedFiles { files: vec![file], format: FileFormat::Csv };
    let table = FileTable::try_new_with_files(vec!["memory://t.csv".to_owned()], listed, cached())
        .await
        .unwrap();
    let plan = table.scan(None, &options).unwrap();
    assert_eq!(run(&plan, &options).await.unwrap(), ["1|x"]);
}
