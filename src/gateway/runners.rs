//! The runners of open sessions, each dialled and bound once by this gateway.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use codeworkspace_api::{CodeInterpreter, Commands};
use codeworkspace_protocol::session::BindRequest;
use rustls::client::ResolvesClientCert;
use tokio::sync::OnceCell;

use super::index::{Index, SessionPod};
use super::runner::{Runner, RunnerError};

/// Runners by the uid of their pod.
#[derive(Clone, Debug)]
pub struct Runners {
    identity: Arc<dyn ResolvesClientCert>,
    index: Arc<Index>,
    bound: Arc<Mutex<HashMap<String, Arc<OnceCell<Runner>>>>>,
}

impl Runners {
    /// No runner yet.
    pub fn new(identity: Arc<dyn ResolvesClientCert>, index: Arc<Index>) -> Self {
        Self {
            identity,
            index,
            bound: Arc::default(),
        }
    }

    /// The runner of a session's pod, bound to the session.
    pub async fn of(
        &self,
        session: &str,
        interpreter: &CodeInterpreter,
        pod: &SessionPod,
    ) -> Result<Runner, RunnerError> {
        let cell = self.cell(pod);
        let runner = cell
            .get_or_try_init(|| async {
                let runner = Runner::new(pod, self.identity.clone())?;
                let request = BindRequest {
                    session: session.to_owned(),
                    commands: interpreter.spec.commands == Commands::Enabled,
                    idle_timeout_seconds: interpreter
                        .spec
                        .idle_timeout_seconds
                        .and_then(|seconds| u64::try_from(seconds).ok()),
                    bundle: None,
                };
                runner.bind(&request).await?;
                Ok::<_, RunnerError>(runner)
            })
            .await?;
        Ok(runner.clone())
    }

    /// Takes a runner for that of a pod, bound already.
    #[cfg(test)]
    pub fn know(&self, pod: &SessionPod, runner: Runner) {
        let mut bound = self.bound.lock().unwrap();
        bound.insert(pod.uid.clone(), Arc::new(OnceCell::new_with(Some(runner))));
    }

    /// The pod's place, after those of pods that are gone were given up.
    fn cell(&self, pod: &SessionPod) -> Arc<OnceCell<Runner>> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = bound.get(&pod.uid) {
            return cell.clone();
        }
        self.index.retain_known(&mut bound);
        bound.entry(pod.uid.clone()).or_default().clone()
    }
}
