//! The control groups of one cluster: kubelet keeps its pods below them, and every other program of the cluster is put there when it
//! starts. So "all processes of this cluster" is a question that the kernel answers, however they were started and whoever died meanwhile.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::instance::Instance;

/// The group of the cluster's own programs. Under cgroup v2 a group that delegates controllers can hold no processes itself.
const SYSTEM: &str = "system";

/// The control groups of one cluster, one in each hierarchy.
pub(super) struct ControlGroups {
    roots: Vec<PathBuf>,
    unified: bool,
    name: String,
}

impl ControlGroups {
    pub(super) fn of(instance: &Instance) -> Result<Self> {
        let hierarchies = hierarchies(&fs::read_to_string("/proc/self/mountinfo")?);
        let name = instance.control_group();
        Ok(Self {
            roots: hierarchies
                .paths
                .iter()
                .map(|path| Path::new(path).join(&name))
                .collect(),
            unified: hierarchies.unified,
            name,
        })
    }

    /// Makes the groups. kubelet demands that the root of its pods exists in every hierarchy.
    pub(super) fn create(&self) -> Result<()> {
        for root in &self.roots {
            let system = root.join(SYSTEM);
            if self.unified {
                let parent = root.parent().context("a control group has a parent")?;
                fs::create_dir_all(&system)?;
                for group in [parent, root] {
                    fs::write(
                        group.join("cgroup.subtree_control"),
                        "+cpu +cpuset +io +memory +pids",
                    )?;
                }
                continue;
            }
            for group in [root, &system] {
                fs::create_dir_all(group)?;
                let parent = group.parent().context("a control group has a parent")?;
                // A new cpuset is empty, and nothing can be put into it before it has processors and memory.
                for file in ["cpuset.cpus", "cpuset.mems"] {
                    if group.join(file).exists() {
                        fs::write(group.join(file), fs::read_to_string(parent.join(file))?.trim())?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Moves the calling process, and so its future children, into the cluster.
    pub(super) fn join(&self) -> Result<()> {
        for root in &self.roots {
            fs::write(root.join(SYSTEM).join("cgroup.procs"), "0")?;
        }
        Ok(())
    }

    /// Ends every process of the cluster and waits until they are gone.
    pub(super) fn kill_all(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let processes = self.processes()?;
            if processes.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("these processes of the cluster do not end: {processes:?}");
            }
            for process in processes {
                self.kill(process)?;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends one process if it still belongs to the cluster. The descriptor holds on to the process, so that its number cannot have gone to
    /// another one between the look and the signal.
    fn kill(&self, process: Pid) -> Result<()> {
        let Ok(descriptor) = pidfd_open(process, PidfdFlags::empty()) else {
            return Ok(());
        };
        let Ok(groups) = fs::read_to_string(format!("/proc/{}/cgroup", process.as_raw_nonzero())) else {
            return Ok(());
        };
        if !belongs(&groups, &self.name) {
            return Ok(());
        }
        match pidfd_send_signal(descriptor, Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("ending process {}", process.as_raw_nonzero())),
        }
    }

    fn processes(&self) -> Result<Vec<Pid>> {
        let mut processes = Vec::new();
        for group in self.groups()? {
            match fs::read_to_string(group.join("cgroup.procs")) {
                Ok(text) => {
                    processes.extend(
                        text.lines()
                            .filter_map(|line| line.parse().ok())
                            .filter_map(Pid::from_raw),
                    );
                }
                Err(error) if gone(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // With cgroup v1 a process is in one group of each hierarchy.
        processes.sort_unstable_by_key(|process| process.as_raw_nonzero());
        processes.dedup();
        Ok(processes)
    }

    /// Removes the groups, which must hold no process any more.
    pub(super) fn remove(&self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let mut busy = None;
            for group in self.groups()? {
                match fs::remove_dir(&group) {
                    Ok(()) => {}
                    Err(error) if gone(&error) => {}
                    Err(error) => busy = Some(error),
                }
            }
            match busy {
                None => return Ok(()),
                // The kernel lets go of a group a moment after its last process.
                Some(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
                Some(error) => return Err(error).context("removing a control group of the cluster"),
            }
        }
    }

    /// Whether any of the groups exists.
    pub(super) fn exist(&self) -> bool {
        self.roots.iter().any(|root| root.exists())
    }

    /// All groups of the cluster, each after those below it.
    fn groups(&self) -> Result<Vec<PathBuf>> {
        let mut groups = Vec::new();
        for root in &self.roots {
            collect(root, &mut groups)?;
        }
        Ok(groups)
    }
}

fn collect(group: &Path, groups: &mut Vec<PathBuf>) -> Result<()> {
    let entries = match fs::read_dir(group) {
        Ok(entries) => entries,
        Err(error) if gone(&error) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for entry in entries {
        match entry {
            Ok(entry) if entry.file_type().is_ok_and(|kind| kind.is_dir()) => collect(&entry.path(), groups)?,
            Ok(_) => {}
            Err(error) if gone(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
    groups.push(group.to_owned());
    Ok(())
}

/// Groups vanish under the reader's eyes while their processes end: containerd's shims remove them too.
fn gone(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::NODEV.raw_os_error())
}

/// Whether `/proc/PID/cgroup` puts a process below the root group `name` in any hierarchy.
fn belongs(groups: &str, name: &str) -> bool {
    groups
        .lines()
        .filter_map(|line| line.splitn(3, ':').nth(2))
        .filter_map(|path| path.strip_prefix('/'))
        .any(|path| path.split('/').next() == Some(name))
}

#[derive(Debug, PartialEq, Eq)]
struct Hierarchies {
    paths: Vec<String>,
    /// cgroup v2 alone: one hierarchy with all controllers.
    unified: bool,
}

/// The hierarchies of control groups. A machine with cgroup v1 has one for each controller, and often a v2 hierarchy without controllers
/// beside them, in which runc makes groups all the same.
fn hierarchies(mounts: &str) -> Hierarchies {
    let mut paths = Vec::new();
    let mut unified = true;
    for line in mounts.lines() {
        let Some((mount, filesystem)) = line.split_once(" - ") else {
            continue;
        };
        let Some(path) = mount
            .split(' ')
            .nth(4)
            .filter(|path| path.starts_with("/sys/fs/cgroup"))
        else {
            continue;
        };
        match filesystem.split(' ').next() {
            Some("cgroup") => unified = false,
            Some("cgroup2") => {}
            _ => continue,
        }
        paths.push(path.to_owned());
    }
    Hierarchies { paths, unified }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_version_1_every_controller_is_a_hierarchy() {
        let mounts = "30 29 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n\
                      32 30 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      33 30 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let paths = ["cpu", "memory", "unified"]
            .map(|name| format!("/sys/fs/cgroup/{name}"))
            .to_vec();
        assert_eq!(
            hierarchies(mounts),
            Hierarchies {
                paths,
                unified: false
            }
        );
    }

    #[test]
    fn with_version_2_there_is_one_hierarchy() {
        let mounts = "30 29 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(
            hierarchies(mounts),
            Hierarchies {
                paths: vec!["/sys/fs/cgroup".to_owned()],
                unified: true
            }
        );
    }

    #[test]
    fn only_processes_below_the_clusters_group_belong_to_it() {
        assert!(belongs(
            "5:pids:/codeworkspace-00c0ffee/system\n",
            "codeworkspace-00c0ffee"
        ));
        assert!(belongs(
            "0::/codeworkspace-00c0ffee/kubepods/pod1/x\n",
            "codeworkspace-00c0ffee"
        ));
        assert!(!belongs(
            "5:pids:/codeworkspace-00c0ffe/system\n4:memory:/\n",
            "codeworkspace-00c0ffee"
        ));
        assert!(!belongs(
            "5:pids:/user/codeworkspace-00c0ffee\n",
            "codeworkspace-00c0ffee"
        ));
    }
}
