//! The Avro schemas of manifests, as Java writes them. Union branches are counted by readers: null is always branch 0.
//!
//! Source: `org.apache.paimon.format.avro.AvroSchemaConverter` over the row types of `org.apache.paimon.manifest.*`.

macro_rules! stats {
    ($name:literal) => {
        concat!(
            r#"{"type":"record","name":""#,
            $name,
            r#"","fields":[{"name":"_MIN_VALUES","type":"bytes"},{"name":"_MAX_VALUES","type":"bytes"},"#,
            r#"{"name":"_NULL_COUNTS","type":["null",{"type":"array","items":["null","long"]}],"default":null}]}"#
        )
    };
}

macro_rules! optional {
    ($name:literal, $kind:literal) => {
        concat!(
            r#"{"name":""#,
            $name,
            r#"","type":["null",""#,
            $kind,
            r#""],"default":null}"#
        )
    };
}

macro_rules! optional_strings {
    ($name:literal) => {
        concat!(
            r#"{"name":""#,
            $name,
            r#"","type":["null",{"type":"array","items":"string"}],"default":null}"#
        )
    };
}

/// `manifest-list-*`; `_VERSION` 2.
pub(super) const MANIFEST_LIST: &str = concat!(
    r#"{"type":"record","name":"record","namespace":"org.apache.paimon.avro.generated","fields":["#,
    r#"{"name":"_VERSION","type":"int"},{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},"#,
    r#"{"name":"_NUM_ADDED_FILES","type":"long"},{"name":"_NUM_DELETED_FILES","type":"long"},"#,
    r#"{"name":"_PARTITION_STATS","type":"#,
    stats!("record__PARTITION_STATS"),
    r#"},{"name":"_SCHEMA_ID","type":"long"},"#,
    optional!("_MIN_BUCKET", "int"),
    ",",
    optional!("_MAX_BUCKET", "int"),
    ",",
    optional!("_MIN_LEVEL", "int"),
    ",",
    optional!("_MAX_LEVEL", "int"),
    ",",
    optional!("_MIN_ROW_ID", "long"),
    ",",
    optional!("_MAX_ROW_ID", "long"),
    "]}"
);

/// `manifest-*`; `_VERSION` 2.
pub(super) const MANIFEST: &str = concat!(
    r#"{"type":"record","name":"record","namespace":"org.apache.paimon.avro.generated","fields":["#,
    r#"{"name":"_VERSION","type":"int"},{"name":"_KIND","type":"int"},{"name":"_PARTITION","type":"bytes"},"#,
    r#"{"name":"_BUCKET","type":"int"},{"name":"_TOTAL_BUCKETS","type":"int"},"#,
    r#"{"name":"_FILE","type":{"type":"record","name":"record__FILE","fields":["#,
    r#"{"name":"_FILE_NAME","type":"string"},{"name":"_FILE_SIZE","type":"long"},{"name":"_ROW_COUNT","type":"long"},"#,
    r#"{"name":"_MIN_KEY","type":"bytes"},{"name":"_MAX_KEY","type":"bytes"},{"name":"_KEY_STATS","type":"#,
    stats!("record__FILE__KEY_STATS"),
    r#"},{"name":"_VALUE_STATS","type":"#,
    stats!("record__FILE__VALUE_STATS"),
    r#"},{"name":"_MIN_SEQUENCE_NUMBER","type":"long"},{"name":"_MAX_SEQUENCE_NUMBER","type":"long"},"#,
    r#"{"name":"_SCHEMA_ID","type":"long"},{"name":"_LEVEL","type":"int"},"#,
    r#"{"name":"_EXTRA_FILES","type":{"type":"array","items":"string"}},"#,
    r#"{"name":"_CREATION_TIME","type":["null",{"type":"long","logicalType":"timestamp-millis"}],"default":null},"#,
    optional!("_DELETE_ROW_COUNT", "long"),
    ",",
    optional!("_EMBEDDED_FILE_INDEX", "bytes"),
    ",",
    optional!("_FILE_SOURCE", "int"),
    ",",
    optional_strings!("_VALUE_STATS_COLS"),
    ",",
    optional!("_EXTERNAL_PATH", "string"),
    ",",
    optional!("_FIRST_ROW_ID", "long"),
    ",",
    optional_strings!("_WRITE_COLS"),
    "]}}]}"
);

/// `index-manifest-*`; `_VERSION` 1.
pub(super) const INDEX_MANIFEST: &str = concat!(
    r#"{"type":"record","name":"record","namespace":"org.apache.paimon.avro.generated","fields":["#,
    r#"{"name":"_VERSION","type":"int"},{"name":"_KIND","type":"int"},{"name":"_PARTITION","type":"bytes"},"#,
    r#"{"name":"_BUCKET","type":"int"},{"name":"_INDEX_TYPE","type":"string"},{"name":"_FILE_NAME","type":"string"},"#,
    r#"{"name":"_FILE_SIZE","type":"long"},{"name":"_ROW_COUNT","type":"long"},"#,
    r#"{"name":"_DELETIONS_VECTORS_RANGES","type":["null",{"type":"array","items":["null","#,
    r#"{"type":"record","name":"record__DELETIONS_VECTORS_RANGES","fields":["#,
    r#"{"name":"f0","type":"string"},{"name":"f1","type":"int"},{"name":"f2","type":"int"},"#,
    optional!("_CARDINALITY", "long"),
    r#"]}]}],"default":null},"#,
    optional!("_EXTERNAL_PATH", "string"),
    r#",{"name":"_GLOBAL_INDEX","type":["null",{"type":"record","name":"record__GLOBAL_INDEX","fields":["#,
    r#"{"name":"_ROW_RANGE_START","type":"long"},{"name":"_ROW_RANGE_END","type":"long"},"#,
    r#"{"name":"_INDEX_FIELD_ID","type":"int"},"#,
    r#"{"name":"_EXTRA_FIELD_IDS","type":["null",{"type":"array","items":"int"}],"default":null},"#,
    optional!("_INDEX_META", "bytes"),
    ",",
    optional!("_SOURCE_META", "bytes"),
    r#"]}],"default":null}]}"#
);
