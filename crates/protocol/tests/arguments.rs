//! The runner's command lines: what the operator writes, the runner reads; anything else is refused.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use codeworkspace_protocol::{
    ArgumentError, ExecArguments, PrepareArguments, ReadArguments, RefusedLinks, RegisterArguments,
    RunnerArguments, ServeArguments, layout, session,
};
use proptest::prelude::*;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn words(line: &[&str]) -> Vec<String> {
    line.iter().map(|word| (*word).to_owned()).collect()
}

fn refusal(line: &[&str]) -> String {
    RunnerArguments::parse(&words(line)).unwrap_err().to_string()
}

fn prepare_line(changes: &[(&'static str, &'static str)]) -> Vec<&'static str> {
    let mut line = vec!["prepare"];
    for (option, value) in [
        ("--bundle", "/b/bundle.tar.gz"),
        ("--digest", DIGEST),
        ("--target", "/w"),
        ("--install", "/t"),
    ] {
        let value = changes
            .iter()
            .find(|(changed, _)| *changed == option)
            .map_or(value, |(_, value)| *value);
        line.extend([option, value]);
    }
    line
}

#[test]
fn the_container_commands_are_these() {
    let prepare = PrepareArguments {
        bundle: layout::BUNDLE.to_owned(),
        digest: DIGEST.to_owned(),
        target: layout::DEFAULT_MOUNT.to_owned(),
        install: layout::TOOLS_DIRECTORY.to_owned(),
        termination_log: layout::TERMINATION_LOG.to_owned(),
    };
    assert_eq!(
        prepare.to_args().join(" "),
        format!(
            "prepare --bundle /codeworkspace-bundle/bundle.tar.gz --digest {DIGEST} --target /workspace --install /codeworkspace \
             --termination-log /dev/termination-log"
        )
    );
    let exec = ExecArguments {
        workdir: "/workspace".to_owned(),
        timeout_ms: Some(600_000),
        grace_ms: 5_000,
        termination_log: layout::TERMINATION_LOG.to_owned(),
        argv: words(&["python3", "/workspace/main.py"]),
    };
    assert_eq!(
        exec.to_args().join(" "),
        "exec --workdir /workspace --timeout-ms 600000 --grace-ms 5000 --termination-log /dev/termination-log \
         -- python3 /workspace/main.py"
    );
    let read = ReadArguments {
        folder: layout::ROOT_DIRECTORY.to_owned(),
        below: Some("team/tools".to_owned()),
        links: RefusedLinks::Fail,
        max_entries: 3,
        max_file_bytes: 2,
        max_total_bytes: 1,
    };
    assert_eq!(
        read.to_args().join(" "),
        "read --folder /codeworkspace-root --below team/tools --links keep --max-entries 3 --max-file-bytes 2 \
         --max-total-bytes 1"
    );
}

#[test]
fn the_commands_of_a_sessions_containers_are_these() {
    let register = RegisterArguments {
        operator: "10.96.0.7:8443".to_owned(),
        authority: "LS0tLS1CRUdJTg==".to_owned(),
        token: format!("{}/{}", layout::TOKEN_DIRECTORY, layout::TOKEN_FILE),
        identity: layout::IDENTITY_DIRECTORY.to_owned(),
        install: layout::TOOLS_DIRECTORY.to_owned(),
        termination_log: layout::TERMINATION_LOG.to_owned(),
    };
    assert_eq!(
        register.to_args().join(" "),
        "register --operator 10.96.0.7:8443 --authority LS0tLS1CRUdJTg== --token /var/run/secrets/codeworkspace.dev/token \
         --identity /codeworkspace-identity --install /codeworkspace --termination-log /dev/termination-log"
    );
    let serve = ServeArguments {
        identity: layout::IDENTITY_DIRECTORY.to_owned(),
        authority: "LS0tLS1CRUdJTg==".to_owned(),
        root: layout::DEFAULT_MOUNT.to_owned(),
        kernels: words(&["python3", "javascript"]),
        port: session::PORT,
        termination_log: layout::TERMINATION_LOG.to_owned(),
    };
    assert_eq!(
        serve.to_args().join(" "),
        "serve --identity /codeworkspace-identity --authority LS0tLS1CRUdJTg== --root /workspace --port 7070 \
         --termination-log /dev/termination-log --kernel python3 --kernel javascript"
    );
}

#[test]
fn a_sessions_wrong_lines_are_refused_with_what_was_expected() {
    let serve = |more: &[&'static str]| {
        let line = ["serve", "--identity", "/i", "--authority", "YQ==", "--root", "/w"];
        refusal(&[&line[..], more].concat())
    };
    assert_eq!(serve(&[]), "serve: `--port` is missing");
    assert_eq!(
        serve(&["--port", "70000"]),
        "serve: `--port 70000`: must be a TCP port"
    );
    assert_eq!(serve(&["--port", "+7"]), "serve: `--port +7`: must be a TCP port");
    assert_eq!(
        serve(&["--port", "1", "--kernel", "../python3"]),
        "serve: `--kernel ../python3`: must be a kernelspec's name: letters, digits, `.`, `_` and `-`"
    );
    assert_eq!(
        serve(&["--port", "1", "--kernel", "a", "--kernel", "a"]),
        "serve: `--kernel a`: was named before"
    );
    assert_eq!(serve(&["--port", "1", "--", "x"]), "serve: unknown argument `--`");
    let register = |operator, authority| {
        refusal(&[
            "register",
            "--operator",
            operator,
            "--authority",
            authority,
            "--token",
            "/t",
            "--identity",
            "/i",
            "--install",
            "/c",
        ])
    };
    for operator in ["10.0.0.1", ":8443", "a b:1", "a:", "a:99999"] {
        assert_eq!(
            register(operator, "YQ=="),
            format!("register: `--operator {operator}`: must be a host and a port, as in `10.0.0.1:8443`")
        );
    }
    assert_eq!(
        register("a:1", "-----BEGIN"),
        "register: `--authority -----BEGIN`: must be a certificate's PEM in base64"
    );
}

#[test]
fn the_termination_log_is_where_kubelet_looks_unless_said_otherwise() {
    let parsed = RunnerArguments::parse(&words(&prepare_line(&[]))).unwrap();
    let expected = PrepareArguments {
        bundle: "/b/bundle.tar.gz".to_owned(),
        digest: DIGEST.to_owned(),
        target: "/w".to_owned(),
        install: "/t".to_owned(),
        termination_log: "/dev/termination-log".to_owned(),
    };
    assert_eq!(parsed, RunnerArguments::Prepare(expected));
}

#[test]
fn words_of_the_body_are_never_read_as_options() {
    let line = [
        "exec",
        "--workdir",
        "/w",
        "--grace-ms",
        "0",
        "--",
        "-rf",
        "--timeout-ms",
        "--",
        "",
        "--help.py",
    ];
    let RunnerArguments::Exec(parsed) = RunnerArguments::parse(&words(&line)).unwrap() else {
        panic!("not an exec command line")
    };
    assert_eq!(parsed.argv, ["-rf", "--timeout-ms", "--", "", "--help.py"]);
    assert_eq!(parsed.timeout_ms, None);
}

#[test]
fn every_wrong_line_is_refused_with_what_was_expected() {
    assert_eq!(RunnerArguments::parse(&[]), Err(ArgumentError::NoSubcommand));
    let cases: &[(&[&str], &str)] = &[
        (
            &["start"],
            "unknown subcommand `start`; expected `prepare`, `exec`, `read`, `register` or `serve`",
        ),
        (&["exec", "--shell"], "exec: unknown argument `--shell`"),
        (&["exec", "--workdir=/w"], "exec: unknown argument `--workdir=/w`"),
        (&["exec", "--workdir"], "exec: `--workdir` needs a value"),
        (
            &["exec", "--grace-ms", "1", "--grace-ms", "2"],
            "exec: `--grace-ms` was given twice",
        ),
        (
            &["exec", "--workdir", "/w", "--grace-ms", "1"],
            "exec: `-- COMMAND` is missing",
        ),
        (
            &["exec", "--workdir", "/w", "--grace-ms", "1", "--"],
            "exec: `-- COMMAND` is missing",
        ),
        (
            &["exec", "--workdir", "/w", "--grace-ms", "1", "--", ""],
            "exec: `-- COMMAND `: the command must not be empty",
        ),
        (
            &["exec", "--workdir", "/w", "--", "true"],
            "exec: `--grace-ms` is missing",
        ),
        (
            &["exec", "--workdir", "w", "--grace-ms", "1", "--", "true"],
            "exec: `--workdir w`: must be an absolute path",
        ),
        (
            &["exec", "--workdir", "/w", "--grace-ms", "+1", "--", "true"],
            "exec: `--grace-ms +1`: must be a whole number of milliseconds",
        ),
        (
            &[
                "exec",
                "--workdir",
                "/w",
                "--timeout-ms",
                "0",
                "--grace-ms",
                "1",
                "--",
                "true",
            ],
            "exec: `--timeout-ms 0`: must be at least 1; leave it out for no limit",
        ),
    ];
    for (line, message) in cases {
        assert_eq!(refusal(line), *message, "{line:?}");
    }
    let up = "read: `--below a/../..`: must be a relative path without empty, `.` and `..` segments";
    assert_eq!(
        refusal(&["read", "--folder", "/r", "--links", "skip", "--below", "a/../.."]),
        up
    );
    let links = "read: `--links follow`: must be `keep` or `skip`";
    assert_eq!(refusal(&["read", "--folder", "/r", "--links", "follow"]), links);
    let digest = "prepare: `--digest sha256:E3B0`: must be `sha256:` and 64 lower-case hex digits";
    assert_eq!(refusal(&prepare_line(&[("--digest", "sha256:E3B0")])), digest);
    let root = "prepare: `--target //`: must not be the root: everything in it is replaced";
    assert_eq!(refusal(&prepare_line(&[("--target", "//")])), root);
    assert_eq!(
        refusal(&[&prepare_line(&[])[..], &["--", "x"]].concat()),
        "prepare: unknown argument `--`"
    );
}

fn path() -> impl Strategy<Value = String> {
    "/[^\0]{1,20}".prop_filter("only the root itself is refused", |path| {
        path.chars().any(|c| c != '/')
    })
}

proptest! {
    #[test]
    fn what_the_operator_writes_the_runner_reads(
        bundle in path(), target in path(), install in path(), termination_log in path(), workdir in path(),
        digest in "sha256:[0-9a-f]{64}",
        timeout_ms in proptest::option::of(1..=u64::MAX), grace_ms in any::<u64>(),
        program in ".{1,20}", arguments in proptest::collection::vec(".{0,20}", 0..5),
        below in proptest::option::of("[a-z -]{1,9}(/[a-z…]{1,9}){0,3}"), skip in any::<bool>(), limits in any::<[u64; 3]>(),
        port in any::<u16>(), authority in "[A-Za-z0-9+/]{1,20}={0,2}",
        kernels in proptest::collection::btree_set("[a-z0-9_-][a-z0-9._-]{0,9}", 0..4),
    ) {
        let links = if skip { RefusedLinks::Skip } else { RefusedLinks::Fail };
        let [max_entries, max_file_bytes, max_total_bytes] = limits;
        let read = ReadArguments { folder: workdir.clone(), below, links, max_entries, max_file_bytes, max_total_bytes };
        prop_assert_eq!(RunnerArguments::parse(&read.to_args()), Ok(RunnerArguments::Read(read)));
        let register = RegisterArguments {
            operator: format!("[::1]:{port}"), authority: authority.clone(), token: bundle.clone(), identity: target.clone(),
            install: install.clone(), termination_log: termination_log.clone(),
        };
        prop_assert_eq!(RunnerArguments::parse(&register.to_args()), Ok(RunnerArguments::Register(register)));
        let kernels = kernels.into_iter().collect();
        let serve = ServeArguments {
            identity: target.clone(), authority, root: workdir.clone(), kernels, port, termination_log: termination_log.clone(),
        };
        prop_assert_eq!(RunnerArguments::parse(&serve.to_args()), Ok(RunnerArguments::Serve(serve)));
        let prepare = PrepareArguments { bundle, digest, target, install, termination_log: termination_log.clone() };
        prop_assert_eq!(RunnerArguments::parse(&prepare.to_args()), Ok(RunnerArguments::Prepare(prepare)));
        let argv = std::iter::once(program).chain(arguments).collect();
        let exec = ExecArguments { workdir, timeout_ms, grace_ms, termination_log, argv };
        prop_assert_eq!(RunnerArguments::parse(&exec.to_args()), Ok(RunnerArguments::Exec(exec)));
    }

    #[test]
    fn no_line_is_too_strange_to_be_answered(line in proptest::collection::vec(".{0,12}", 0..8)) {
        let _ = RunnerArguments::parse(&line);
        for subcommand in ["prepare", "exec", "read", "register", "serve"] {
            let _ = RunnerArguments::parse(&[&[subcommand.to_owned()], &line[..]].concat());
        }
    }
}
