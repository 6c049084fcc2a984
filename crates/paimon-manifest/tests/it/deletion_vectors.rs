//! Index files of deletion vectors that Java wrote: their manifests lead to them, and they are written again byte for byte.

use std::path::PathBuf;
use std::sync::Arc;

use paimon_format::dv::{BitmapKind, DeletionVectorsIndexFile};
use paimon_format::meta::{DELETION_VECTORS_INDEX, FileLocation, IndexFileNames, PathSettings, TablePaths};
use paimon_format::storage::{FileRoots, LocalStorage, Storage};
use paimon_manifest::manifest::{ManifestFiles, ManifestSettings};
use paimon_manifest::schema::SchemaStore;
use paimon_manifest::snapshot::SnapshotStore;
use rstest::rstest;

use crate::support::{env, memory};

#[rstest]
#[case("golden/dv_lookup/warehouse/default.db/t", BitmapKind::Bits32)]
#[case("golden/dv_none/warehouse/default.db/t", BitmapKind::Bits32)]
#[case("spark/deletion_vectors/warehouse/default.db/t", BitmapKind::Bits32)]
#[case("spark/deletion_vectors/warehouse/default.db/done", BitmapKind::Bits32)]
#[case("spark/deletion_vectors/warehouse/default.db/app", BitmapKind::Bits32)]
#[case("spark/deletion_vectors/warehouse/default.db/b64", BitmapKind::Bits64)]
#[tokio::test]
async fn they_are_written_as_java_does(#[case] table: &str, #[case] kind: BitmapKind) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let java: Arc<dyn Storage> = Arc::new(LocalStorage::new(root.join(table), env()));
    let ours = memory();
    let schema = SchemaStore::new(Arc::clone(&java)).latest().await.unwrap().unwrap();
    let settings = PathSettings::from_options(schema.partition_fields(), &schema.options).unwrap();
    let paths = TablePaths::new(settings);
    assert_eq!(BitmapKind::from_options(&schema.options).unwrap(), kind);
    let manifests = ManifestFiles::new(
        Arc::clone(&java),
        env(),
        schema.partition_fields(),
        ManifestSettings::default(),
    );
    let snapshots = SnapshotStore::new(Arc::clone(&java), env());
    let names = Arc::new(IndexFileNames::new(env().ids));
    let mut vectors = 0;
    for id in snapshots.list_ids().await.unwrap() {
        let Some(name) = snapshots.get(id).await.unwrap().index_manifest else {
            continue;
        };
        for entry in manifests.read_index(&name).await.unwrap() {
            assert_eq!(entry.file.index_type, DELETION_VECTORS_INDEX);
            let bucket = paths.bucket(&entry.partition, entry.bucket).unwrap();
            let index = |storage: &Arc<dyn Storage>| {
                let roots = FileRoots::new(Arc::clone(storage));
                DeletionVectorsIndexFile::new(roots, bucket.clone(), Arc::clone(&names), kind)
            };
            let found = index(&java).read(&entry.file, |_| true).await.unwrap();
            let ranges = entry.file.dv_ranges.clone().unwrap();
            assert_eq!(found.len(), ranges.len());
            vectors += ranges.len();
            let in_order = ranges.iter().map(|range| {
                let name = range.data_file_name.as_str();
                (name, found[name].as_ref())
            });
            let mut again = index(&ours).write(in_order).await.unwrap();
            assert_eq!(
                bytes(&ours, bucket.index_file(&again)).await,
                bytes(&java, bucket.index_file(&entry.file)).await
            );
            again.file_name.clone_from(&entry.file.file_name);
            assert_eq!(again, entry.file, "{table} snapshot {id}");
        }
    }
    assert!(vectors > 0, "{table}");
}

async fn bytes(storage: &Arc<dyn Storage>, location: FileLocation) -> Vec<u8> {
    match location {
        FileLocation::Table(path) => storage.read_all(&path).await.unwrap().to_vec(),
        FileLocation::External(path) => unreachable!("{path}: outside of the table"),
    }
}
