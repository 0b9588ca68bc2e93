//! The MCP server, by streamable HTTP: the native verbs as tools. It keeps no MCP session, so that any replica answers any request.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::IntoResponse as _;
use axum::routing::any;
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorCode, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::access::Right;
use super::endpoints::MAX_JSON_BYTES;
use super::{Native, Place, tools};

const PATH: &str = "/mcp/{namespace}/{interpreter}";

const INSTRUCTIONS: &str = "Runs code and shell commands in isolated sessions. Call open_session first, and give the session's id to \
    every other tool. Variables and files live as long as the session; close_session when you are done.";

#[derive(Clone)]
struct Server {
    native: Arc<Native>,
    tools: Arc<[Tool]>,
}

type Service = StreamableHttpService<Server, NeverSessionManager>;

/// The server's path, which names the interpreter.
pub fn router(native: &Arc<Native>) -> Router<Arc<Native>> {
    let server = Server {
        native: native.clone(),
        tools: tools::all().into(),
    };
    // Browsers cannot be made to send a token that they do not have, so that the check of host names would guard nothing here. The
    // gateway's own name is what its users have given it, which it does not know.
    let configuration = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MAX_JSON_BYTES);
    let service = Service::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        configuration,
    );
    let serve = async |State(native): State<Arc<Native>>, request: Request, service: Service| match native
        .admit(Right::Create, request)
        .await
    {
        Ok(request) => service.handle(request).await.map(Body::new),
        Err(problem) => problem.into_response(),
    };
    Router::new().route(
        PATH,
        any(move |state: State<Arc<Native>>, request: Request| serve(state, request, service)),
    )
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("codeworkspace", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.to_vec()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let place = context
            .extensions
            .get::<Parts>()
            .and_then(|parts| parts.extensions.get::<Place>())
            .cloned()
            .ok_or_else(|| ErrorData::internal_error("nobody has permitted this call", None))?;
        let arguments = request.arguments.unwrap_or_default();
        let called = self.native.call_tool(place, &request.name, arguments);
        let result = tokio::select! {
            result = called => result,
            // The caller has gone: so the events are dropped, and the runner interrupts what nobody listens to.
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the caller has gone", None)),
        };
        match result {
            Some(result) => Ok(result.into()),
            None => Err(ErrorData::new(
                ErrorCode::INVALID_PARAMS,
                format!("there is no tool {}", request.name),
                None,
            )),
        }
    }
}
