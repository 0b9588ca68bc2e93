//! How often the kernel killed a process of this container for want of memory.

use std::path::Path;

/// Where container runtimes mount a container's own control groups.
pub(crate) const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// The counter `oom_kill` of the container's memory control group, in version 2 or else version 1 of its interface (kernel
/// documentation, admin-guide/cgroup-v2 and cgroup-v1/memory). Absent when neither can be read.
pub(crate) fn oom_kills(control_groups: &Path) -> Option<u64> {
    ["memory.events", "memory/memory.oom_control"]
        .iter()
        .filter_map(|file| fs_err::read_to_string(control_groups.join(file)).ok())
        .find_map(|text| counter(&text))
}

fn counter(text: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kills_with(file: &str, text: &str) -> Option<u64> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join(file);
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(file, text).unwrap();
        oom_kills(directory.path())
    }

    #[test]
    fn both_generations_of_control_groups_are_read() {
        let version_2 = "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 0\n";
        assert_eq!(kills_with("memory.events", version_2), Some(3));
        let version_1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n";
        assert_eq!(kills_with("memory/memory.oom_control", version_1), Some(2));
    }

    #[test]
    fn an_unreadable_counter_is_unknown_and_not_zero() {
        assert_eq!(oom_kills(Path::new("/nonexistent")), None);
        assert_eq!(kills_with("memory.events", "oom_kill many\n"), None);
        assert_eq!(
            kills_with("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n"),
            None
        );
    }
}
