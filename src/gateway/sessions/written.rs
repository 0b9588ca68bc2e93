//! Sessions as this gateway wrote them, until its watch tells of them: who has started or stopped a session finds it so in the next call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use codeworkspace_api::CodeSession;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;

/// A watch that lags longer has other troubles.
const MEMORY: SignedDuration = SignedDuration::from_secs(30);

/// Namespace and name.
type Key = (String, String);

/// What was written of late.
#[derive(Clone, Debug, Default)]
pub struct Written(Arc<Mutex<HashMap<Key, (Timestamp, CodeSession)>>>);

impl Written {
    /// The API server has answered a write with this object.
    pub fn remember(&self, session: CodeSession, now: Timestamp) {
        let mut written = self.lock();
        written.retain(|_, (at, _)| now.duration_since(*at) < MEMORY);
        written.insert(key(&session), (now, session));
    }

    /// The newer one of what was written of a session and what the watch tells of it.
    pub fn over(&self, namespace: &str, name: &str, watched: Option<CodeSession>) -> Option<CodeSession> {
        let key = (namespace.to_owned(), name.to_owned());
        let mut written = self.lock();
        match (written.get(&key), watched) {
            (Some((_, session)), Some(watched)) if version(session) <= version(&watched) => {
                written.remove(&key);
                Some(watched)
            }
            (Some((_, session)), _) => Some(session.clone()),
            (None, watched) => watched,
        }
    }

    /// The same for all sessions that are `wanted`.
    pub fn over_all<'a>(
        &self,
        watched: impl Iterator<Item = &'a CodeSession>,
        wanted: impl Fn(&CodeSession) -> bool,
    ) -> Vec<CodeSession> {
        let mut sessions: HashMap<Key, CodeSession> = watched
            .filter(|session| wanted(session))
            .map(|session| (key(session), session.clone()))
            .collect();
        for (key, (_, session)) in self.lock().iter().filter(|(_, (_, session))| wanted(session)) {
            if sessions
                .get(key)
                .is_none_or(|watched| version(watched) < version(session))
            {
                sessions.insert(key.clone(), session.clone());
            }
        }
        sessions.into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, (Timestamp, CodeSession)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(session: &CodeSession) -> Key {
    (session.namespace().unwrap_or_default(), session.name_any())
}

/// Later versions of an object have larger numbers (KEP-5504).
fn version(session: &CodeSession) -> Option<u64> {
    session.resource_version()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use codeworkspace_api::{CodeSessionSpec, InterpreterReference};

    use super::*;

    fn session(name: &str, version: u64, stop: bool) -> CodeSession {
        let mut session = CodeSession::new(
            name,
            CodeSessionSpec {
                interpreter_ref: InterpreterReference { name: "x".to_owned() },
                name: None,
                timeout_seconds: 60,
                parameters_digest: String::new(),
                pod_name: None,
                stop,
            },
        );
        session.metadata.namespace = Some("team".to_owned());
        session.metadata.resource_version = Some(version.to_string());
        session
    }

    fn told(session: Option<&CodeSession>) -> Option<(u64, bool)> {
        session.map(|session| (version(session).unwrap(), session.spec.stop))
    }

    #[test]
    fn a_stopped_session_stays_stopped_while_the_watch_lags() {
        let (old, stopped, later) = (
            session("a", 9, false),
            session("a", 10, true),
            session("a", 11, true),
        );
        let written = Written::default();
        written.remember(stopped, Timestamp::UNIX_EPOCH);
        let over = |watched: Option<&CodeSession>| told(written.over("team", "a", watched.cloned()).as_ref());
        assert_eq!(over(None), Some((10, true)));
        assert_eq!(over(Some(&old)), Some((10, true)));
        let all = written.over_all([&old].into_iter(), |_| true);
        assert_eq!((all.len(), told(all.first())), (1, Some((10, true))));
        assert_eq!(over(Some(&later)), Some((11, true)));
        assert_eq!(over(None), None, "the watch has told of it, and then of its end");
    }

    #[test]
    fn a_started_session_is_listed_before_the_watch_tells_of_it() {
        let written = Written::default();
        written.remember(session("b", 10, false), Timestamp::UNIX_EPOCH);
        let watched = session("a", 9, false);
        let all = written.over_all([&watched].into_iter(), |_| true);
        let mut names: Vec<_> = all.iter().map(kube::ResourceExt::name_any).collect();
        names.sort();
        assert_eq!(names, ["a", "b"]);
        let stopped = written.over_all([].into_iter(), |session| session.spec.stop);
        assert!(stopped.is_empty());
    }

    #[test]
    fn what_was_written_long_ago_is_forgotten() {
        let written = Written::default();
        written.remember(session("a", 1, false), Timestamp::UNIX_EPOCH);
        written.remember(session("b", 2, false), Timestamp::UNIX_EPOCH + MEMORY);
        assert!(written.over("team", "a", None).is_none());
    }
}
