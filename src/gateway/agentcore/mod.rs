//! The AgentCore API over HTTP: proves who calls, reads the request, and answers in the shapes that AWS's SDKs know.

mod answer;
mod body;
mod control_plane;
mod data_plane;
pub(super) mod files;
mod invoke;
pub(super) mod outcome;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use codeworkspace_agentcore::error::{ErrorAnswer, ServiceError};
use codeworkspace_agentcore::identifier::InterpreterIdentifier;
use codeworkspace_agentcore::operation::Operation;
use codeworkspace_agentcore::query::Query;
use codeworkspace_agentcore::route::{Route, route};
use codeworkspace_agentcore::signature::{self, ExpectedScope, Head, SIGNING_NAME, SignatureError};
use codeworkspace_source::Clock;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use kube::Client;
use secrecy::ExposeSecret as _;
use tokio::sync::Semaphore;

use super::access_key::{AccessKey, AccessKeys};
use super::configuration::GatewayConfiguration;
use super::rates::{Rates, Usage};
use super::runners::Runners;
use super::sessions::{InterpreterKey, Sessions};
use body::{BodyError, Received};

/// The service behind the API.
pub struct AgentCore {
    client: Client,
    sessions: Sessions,
    runners: Runners,
    keys: Arc<AccessKeys>,
    rates: Arc<Rates>,
    large_bodies: Arc<Semaphore>,
    configuration: GatewayConfiguration,
    clock: Arc<dyn Clock>,
}

/// A call whose signature is good.
struct Call {
    tenant: String,
    /// Region that the caller signed for.
    region: String,
    query: Option<String>,
    headers: HeaderMap,
    body: Received,
}

impl Call {
    fn query(&self) -> Query<'_> {
        Query::new(self.query.as_deref())
    }
}

/// Makes a request of a body. Bodies may be large, so that this is done where it may take its time.
async fn parse<T, E>(
    body: Received,
    parse: impl FnOnce(&[u8]) -> Result<T, E> + Send + 'static,
) -> Result<T, ServiceError>
where
    T: Send + 'static,
    E: Send + 'static,
    ServiceError: From<E>,
{
    Ok(body.read(parse).await.map_err(|error| body_error(&error))??)
}

impl AgentCore {
    /// Puts the parts together.
    pub fn new(
        client: Client,
        sessions: Sessions,
        runners: Runners,
        keys: Arc<AccessKeys>,
        rates: Arc<Rates>,
        configuration: GatewayConfiguration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            client,
            sessions,
            runners,
            keys,
            rates,
            large_bodies: Arc::new(Semaphore::new(configuration.limits.large_bodies)),
            configuration,
            clock,
        }
    }

    async fn answer(&self, request: Request) -> Result<Response, ErrorAnswer> {
        let (head, body) = request.into_parts();
        let route = route(&head.method, head.uri.path())?;
        let operation = route.operation();
        let (signed, key) = self.caller(&head)?;
        let refuse = |error: ServiceError| error.answer(operation);
        let usage = match operation {
            Operation::StartSession => Usage::Start,
            _ => Usage::Call,
        };
        self.rates
            .check(&key.tenant, usage, self.clock.now())
            .map_err(|error| refuse(ServiceError::Throttling(error.to_string())))?;
        let declared = head
            .headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse().ok());
        let body = Received::receive(body, declared, &self.large_bodies)
            .await
            .map_err(|error| refuse(body_error(&error)))?;
        signed.verify(key.secret.expose_secret().as_bytes(), &body.hash)?;
        let call = Call {
            tenant: key.tenant.clone(),
            region: signed.scope().region.clone(),
            query: head.uri.query().map(str::to_owned),
            headers: head.headers,
            body,
        };
        self.dispatch(route, call).await.map_err(refuse)
    }

    /// Who claims to call, as far as the head of the request tells. Whether that is true shows when the body is there.
    fn caller(&self, head: &Parts) -> Result<(signature::SignedRequest, Arc<AccessKey>), SignatureError> {
        let signed = signature::parse(
            Head {
                method: &head.method,
                path: head.uri.path(),
                query: head.uri.query(),
                headers: &head.headers,
            },
            self.clock.now(),
            ExpectedScope {
                region: self.configuration.region.as_deref(),
                service: SIGNING_NAME,
            },
        )?;
        let key = self
            .keys
            .get(signed.access_key_id().as_str())
            .ok_or(SignatureError::UnknownKey)?;
        Ok((signed, key))
    }

    async fn dispatch(&self, route: Route, call: Call) -> Result<Response, ServiceError> {
        match route {
            Route::StartSession(interpreter) => self.start_session(&interpreter, call).await,
            Route::InvokeSession(interpreter) => self.invoke(&interpreter, call).await,
            Route::GetSession(interpreter) => self.get_session(&interpreter, &call).await,
            Route::ListSessions(interpreter) => self.list_sessions(&interpreter, call).await,
            Route::StopSession(interpreter) => self.stop_session(&interpreter, call).await,
            Route::CreateInterpreter => self.create_interpreter(call).await,
            Route::GetInterpreter(interpreter) => self.get_interpreter(&interpreter, &call).await,
            Route::ListInterpreters => self.list_interpreters(&call),
            Route::DeleteInterpreter(interpreter) => self.delete_interpreter(&interpreter, &call).await,
        }
    }
}

fn key(interpreter: &InterpreterIdentifier) -> InterpreterKey {
    InterpreterKey::Identifier(interpreter.id().as_str().to_owned())
}

fn body_error(error: &BodyError) -> ServiceError {
    use codeworkspace_agentcore::validation::{Reason, ValidationError};
    match error {
        BodyError::TooLong => ValidationError::body_too_long().into(),
        BodyError::Incomplete(_) => ValidationError::new(Reason::CannotParse, &error.to_string()).into(),
        BodyError::Disk(_) => {
            tracing::error!(%error, "a request's body cannot be kept");
            ServiceError::InternalServer("the request's body cannot be kept now; try again".to_owned())
        }
    }
}

/// The API.
pub fn router(service: AgentCore) -> Router {
    Router::new().fallback(serve).with_state(Arc::new(service))
}

async fn serve(State(service): State<Arc<AgentCore>>, request: Request) -> Response {
    let trace = format!("{} {}", request.method(), request.uri().path());
    match service.answer(request).await {
        Ok(response) => response,
        Err(error) => {
            tracing::info!(
                call = trace,
                status = error.status.as_u16(),
                error = error.error_type,
                "refused"
            );
            answer::refusal(&error)
        }
    }
}
