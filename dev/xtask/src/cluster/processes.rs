//! The long-running programs of the cluster: starting them, and knowing later whether they still run.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::command;
use super::control_groups::ControlGroups;
use super::instance::Instance;
use super::namespaces::{Namespace, enter};

/// What a process needs to become a program of the cluster. This command starts itself again with these arguments, because only the new
/// process can put itself into the cluster's control groups before it does anything else.
#[derive(clap::Args)]
pub(crate) struct BecomeArguments {
    /// The component's name.
    name: String,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

/// Starts a component.
pub(super) fn start(instance: &Instance, name: &'static str, program: &[OsString]) -> Result<Started> {
    let log = fs::File::create(instance.log(name))?.into_parts().0;
    let child = Command::new("/proc/self/exe")
        .args(["cluster", "become", name, "--"])
        .args(program)
        // Nothing of the caller's: a proxy, for one, would come between the components.
        .env_clear()
        .env("PATH", command::search_path())
        .env("HOME", "/")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .with_context(|| format!("{name} could not be started"))?;
    Ok(Started {
        name,
        child,
        log: instance.log(name),
    })
}

/// Turns the calling process into a component. Returns only if that fails.
pub(super) fn become_component<T>(instance: &Instance, arguments: &BecomeArguments) -> Result<T> {
    // A session of its own: the end of the terminal is not the end of the cluster.
    rustix::process::setsid().context("leaving the session")?;
    ControlGroups::of(instance)?.join()?;
    Record::of(std::process::id())?.write(instance, &arguments.name)?;
    let (program, rest) = arguments.program.split_first().context("no program")?;
    let mut command = enter(
        instance,
        &[Namespace::Network, Namespace::Mount],
        &program.to_string_lossy(),
    );
    Err(command.args(rest).exec()).context("entering the cluster's namespaces")
}

/// A component that this process started.
pub(super) struct Started {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Started {
    /// Fails with the end of its log if the component has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(());
        };
        bail!(
            "{} ended ({status}); the end of {}:\n{}",
            self.name,
            self.log.display(),
            command::tail(&self.log)
        )
    }
}

/// Identifies a process beyond its number, which the kernel gives to another one some time later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pid: u32,
    /// In clock ticks since the machine's start.
    started: u64,
    /// The machine's start.
    boot: String,
}

impl Record {
    fn of(pid: u32) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let started = start_time(&stat).with_context(|| format!("reading the start of process {pid}"))?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?
            .trim()
            .to_owned();
        Ok(Self { pid, started, boot })
    }

    fn write(&self, instance: &Instance, name: &str) -> Result<()> {
        let path = instance.path("processes").join(name);
        Ok(fs::write(
            path,
            format!("{} {} {}\n", self.pid, self.started, self.boot),
        )?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let record = Self {
            pid: words.next()?.parse().ok()?,
            started: words.next()?.parse().ok()?,
            boot: words.next()?.to_owned(),
        };
        words.next().is_none().then_some(record)
    }
}

/// The number of the process that runs a component, if it does.
pub(super) fn running(instance: &Instance, name: &str) -> Option<u32> {
    let record = Record::parse(&fs::read_to_string(instance.path("processes").join(name)).ok()?)?;
    (Record::of(record.pid).ok()? == record).then_some(record.pid)
}

/// The field `starttime` of `/proc/PID/stat`, unless the process is dead and waits only for its parent to notice. The command's name, in
/// parentheses, may itself hold spaces and parentheses.
fn start_time(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    // Fields are numbered from 1; the state is the third.
    fields.nth(22 - 4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_found_behind_any_name() {
        let stat = "12 (a) b (c)) S 1 12 12 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 7 0 98765 1000 20 18446744073709551615";
        assert_eq!(start_time(stat), Some(98765));
    }

    #[test]
    fn a_dead_process_does_not_run() {
        let stat =
            "12 (etcd) Z 1 12 12 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 7 0 98765 1000 20 18446744073709551615";
        assert_eq!(start_time(stat), None);
    }

    #[test]
    fn records_are_read_back() {
        let record = Record {
            pid: 7,
            started: 9,
            boot: "b-1".to_owned(),
        };
        assert_eq!(Record::parse("7 9 b-1\n"), Some(record));
        assert_eq!(Record::parse("7 9"), None);
        assert_eq!(Record::parse(""), None);
    }

    #[test]
    fn a_living_process_is_told_from_an_earlier_one_with_its_number() {
        let own = Record::of(std::process::id()).unwrap();
        assert_eq!(own, Record::of(std::process::id()).unwrap());
        assert_ne!(
            own,
            Record {
                started: own.started + 1,
                ..own.clone()
            }
        );
    }
}
