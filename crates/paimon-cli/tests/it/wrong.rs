//! What users do wrong, and what they are told.

use crate::support::Shell;

#[tokio::test]
async fn each_failure_is_one_paragraph() {
    let shell = Shell::new();
    shell.create().await;
    let mut seen = Vec::new();
    let cases: [(&[&str], &str); 29] = [
        (&["read", "@nothing"], ""),
        (&["read", "@t", "--snapshot", "4"], ""),
        (&["read", "@t", "--timestamp", "noon"], ""),
        (&["read", "@t", "--columns", "id,x"], ""),
        (&["read", "@t", "--where", "id ="], ""),
        (&["read", "@t", "--where", "x = 1"], ""),
        (&["read", "@t", "--where", "id = 'one'"], ""),
        (&["compact", "@t", "--partition", "dt=1"], ""),
        (&["compact", "@t", "--partition", "dt"], ""),
        (&["compact", "@t", "-D", "num-levels=1"], ""),
        (&["compact", "@t", "-D", "num-levels"], ""),
        (&["write", "@t"], "{\"id\": 1}\nnot json\n"),
        (&["write", "@t"], "{\"id\": 1, \"town\": \"x\"}\n"),
        (&["write", "@t"], "{\"id\": \"one\"}\n"),
        (&["write", "@t"], "{\"city\": \"x\"}\n"),
        (&["write", "@t", "--kind-field", "op"], "{\"id\": 1, \"op\": \"+X\"}\n"),
        (&["write", "@t", "@nofile.csv"], ""),
        (&["compact", "@t", "--bucket", "7"], ""),
        (&["levels", "@t", "--bucket", "-1"], ""),
        (&["write", "@t"], "{\"id\": 1, \"amount\": 123456789.01}\n"),
        (&["write", "@t"], "{\"id\": 1, \"id\": 2}\n"),
        (&["write", "@t", "--format", "csv"], "id,city\n1,\"a\n2,b\n3,c\n"),
        (&["write", "@t", "--format", "csv"], "id,city\n1,a\n\n2\n"),
        (&["write", "@t", "--format", "csv"], "id,id\n1,2\n"),
        (&["write", "@t", "--format", "parquet"], "no parquet"),
        (&["write", "@t", "--format", "csv"], "id,city\n1,a\n,b\n"),
        (&["write", "@t", "--commit-every", "0"], "{\"id\": 1}\n"),
        (&["compact", "@t", "--jobs", "0"], ""),
        (
            &[
                "create",
                "@u",
                "--column",
                "id INT",
                "--primary-key",
                "id",
                "-D",
                "full-compaction.delta-commits=0",
            ],
            "",
        ),
    ];
    for (args, input) in cases {
        let ran = shell.run_with_input(args, input).await;
        assert_eq!(ran.out, "", "{args:?}");
        assert_ne!(ran.code, 0, "{args:?}");
        seen.push(format!("$ paimon {}\n{}: {}", args.join(" "), ran.code, ran.err));
    }
    insta::assert_snapshot!(seen.join(""));
    // Nothing was written by any of them.
    assert_eq!(
        shell.ok(&["snapshots", "@t"]).await,
        "no snapshots: nothing was committed yet\n"
    );
}

#[tokio::test]
async fn help_goes_to_the_output_and_usage_errors_do_not() {
    let shell = Shell::new();
    let help = shell.run(&["compact", "--help"]).await;
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    assert!(help.out.contains("--dry-run"));
    let wrong = shell.run(&["compact"]).await;
    assert_eq!((wrong.code, wrong.out.as_str()), (2, ""));
    assert!(wrong.err.contains("<TABLE>"), "{}", wrong.err);
}

#[tokio::test]
async fn a_closed_output_ends_a_command_quietly() {
    struct Closed;

    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let dir = tempfile::tempdir().unwrap();
    let mut console = paimon_cli::Console {
        input: Box::new(std::io::empty()),
        out: Box::new(Closed),
        err: Box::new(std::io::sink()),
        progress: false,
    };
    let env = paimon::format::env::Env::fixed(dir.path());
    let location = dir.path().join("demo");
    let args = ["paimon", "demo", location.to_str().unwrap()].map(std::ffi::OsString::from);
    assert_eq!(
        paimon_cli::execute(paimon::Registry::default(), args, env, &mut console).await,
        0
    );
}
