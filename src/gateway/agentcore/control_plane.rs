//! Interpreters: create, get, list, delete. Each is a CodeInterpreter of the tenant's namespace, which its people see as well.

use axum::response::Response;
use codeworkspace_agentcore::error::ServiceError;
use codeworkspace_agentcore::identifier::{InterpreterId, InterpreterIdentifier};
use codeworkspace_agentcore::shapes::{
    CreateInterpreterRequest, CreateInterpreterResponse, DeleteInterpreterResponse, GetInterpreterResponse,
    InterpreterStatus, InterpreterSummary, InterpreterType, ListInterpretersRequest,
    ListInterpretersResponse, NetworkConfiguration, NetworkMode,
};
use codeworkspace_agentcore::validation::ValidationError;
use codeworkspace_api::{CodeInterpreter, CodeInterpreterSpec, DEFAULT_NAME, WarmPool, condition, labels};
use http::StatusCode;
use jiff::Timestamp;
use kube::api::{DeleteParams, ObjectMeta, PostParams, Preconditions};
use kube::{Api, ResourceExt as _};

use super::answer::{json, of_api};
use super::{AgentCore, Call, key};
use crate::gateway::defaults::GATEWAY;
use crate::gateway::page::page;
use crate::gateway::sessions::{SessionsError, hexadecimal_digest};

/// The account in ARNs: there are no accounts here, and clients want twelve digits.
const ACCOUNT: &str = "000000000000";

impl AgentCore {
    pub(super) async fn create_interpreter(&self, call: Call) -> Result<Response, ServiceError> {
        let request = super::parse(call.body, CreateInterpreterRequest::parse).await?;
        if request.network_mode == NetworkMode::Public {
            let message = "PUBLIC is not supported yet: sessions reach no network, so it must be SANDBOX";
            return Err(ValidationError::field("networkConfiguration.networkMode", message).into());
        }
        let name = request.name.as_str();
        // The object's name follows from the token, if there is one: so a repeated call finds it.
        let head: String = name
            .chars()
            .map(|letter| match letter {
                '_' => '-',
                other => other.to_ascii_lowercase(),
            })
            .collect();
        let tail = match &request.client_token {
            Some(token) => hexadecimal_digest(&[name.as_bytes(), token.as_str().as_bytes()]),
            None => super::data_plane::random_token()?,
        };
        let object_name = format!("{}-{}", head.trim_end_matches('-'), &tail[..10]);
        let spec = CodeInterpreterSpec {
            template: self.configuration.default_interpreter.template.clone(),
            warm_pool: WarmPool {
                size: self.configuration.default_interpreter.warm_pool_size,
                ..WarmPool::default()
            },
            description: request.description,
            ..CodeInterpreterSpec::default()
        };
        let new = CodeInterpreter {
            metadata: ObjectMeta {
                name: Some(object_name.clone()),
                namespace: Some(call.tenant.clone()),
                labels: Some([(labels::MANAGED_BY.to_owned(), GATEWAY.to_owned())].into()),
                annotations: Some([(labels::AGENTCORE_NAME.to_owned(), name.to_owned())].into()),
                ..ObjectMeta::default()
            },
            spec: spec.clone(),
            status: None,
        };
        let api: Api<CodeInterpreter> = Api::namespaced(self.client.clone(), &call.tenant);
        let object = match api.create(&PostParams::default(), &new).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let object = api.get(&object_name).await.map_err(|error| of_api(&error))?;
                let is_same = object.agentcore_name() == name && object.spec.description == spec.description;
                if !is_same {
                    return Err(SessionsError::TokenReused.into());
                }
                object
            }
            other => other.map_err(|error| of_api(&error))?,
        };
        let id = id_of(&object)?;
        json(
            StatusCode::ACCEPTED,
            &CreateInterpreterResponse {
                code_interpreter_arn: id.arn(&call.region, ACCOUNT),
                code_interpreter_id: id,
                created_at: created_at(&object),
                status: status_of(&object),
            },
        )
    }

    pub(super) async fn get_interpreter(
        &self,
        interpreter: &InterpreterIdentifier,
        call: &Call,
    ) -> Result<Response, ServiceError> {
        let object = self.sessions.interpreter(&call.tenant, &key(interpreter)).await?;
        let id = interpreter.id().clone();
        json(
            StatusCode::OK,
            &GetInterpreterResponse {
                code_interpreter_arn: id.arn(&call.region, ACCOUNT),
                code_interpreter_id: id,
                name: object.agentcore_name(),
                description: object.spec.description.clone(),
                network_configuration: NetworkConfiguration {
                    network_mode: NetworkMode::Sandbox,
                },
                status: status_of(&object),
                failure_reason: stalled(&object),
                created_at: created_at(&object),
                last_updated_at: created_at(&object),
            },
        )
    }

    pub(super) fn list_interpreters(&self, call: &Call) -> Result<Response, ServiceError> {
        let request = ListInterpretersRequest::parse(call.query())?;
        let mut objects = self.sessions.interpreters(&call.tenant);
        objects.retain(|object| {
            let kind = if object.name_any() == DEFAULT_NAME {
                InterpreterType::System
            } else {
                InterpreterType::Custom
            };
            request.kind.is_none_or(|wanted| wanted == kind)
        });
        let (objects, next_token) = page(
            objects,
            request.max_results,
            request.next_token.as_ref(),
            |object| (created_at(object), object.name_any()),
        )?;
        let code_interpreter_summaries = objects
            .iter()
            .map(|object| {
                let id = id_of(object)?;
                Ok(InterpreterSummary {
                    code_interpreter_arn: id.arn(&call.region, ACCOUNT),
                    code_interpreter_id: id,
                    name: Some(object.agentcore_name()),
                    description: object.spec.description.clone(),
                    status: status_of(object),
                    created_at: created_at(object),
                    last_updated_at: Some(created_at(object)),
                })
            })
            .collect::<Result<_, ServiceError>>()?;
        json(
            StatusCode::OK,
            &ListInterpretersResponse {
                code_interpreter_summaries,
                next_token,
            },
        )
    }

    pub(super) async fn delete_interpreter(
        &self,
        interpreter: &InterpreterIdentifier,
        call: &Call,
    ) -> Result<Response, ServiceError> {
        if interpreter.id().is_system() {
            return Err(ServiceError::AccessDenied(
                "the system's code interpreter cannot be deleted".to_owned(),
            ));
        }
        let object = self.sessions.interpreter(&call.tenant, &key(interpreter)).await?;
        // Nobody could stop them any more.
        let sessions = self.sessions.list(&call.tenant, &key(interpreter)).await?;
        let open = sessions
            .iter()
            .filter(|session| self.sessions.is_open(session))
            .count();
        if open > 0 {
            let message = format!(
                "code interpreter {} has {open} open sessions: stop them first",
                interpreter.id().as_str()
            );
            return Err(ServiceError::Conflict(message));
        }
        let api: Api<CodeInterpreter> = Api::namespaced(self.client.clone(), &call.tenant);
        let parameters = DeleteParams::default().preconditions(Preconditions {
            uid: object.uid(),
            resource_version: None,
        });
        match api.delete(&object.name_any(), &parameters).await {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                return Err(SessionsError::InterpreterNotFound(interpreter.id().as_str().to_owned()).into());
            }
            other => other.map_err(|error| of_api(&error))?,
        };
        json(
            StatusCode::ACCEPTED,
            &DeleteInterpreterResponse {
                code_interpreter_id: interpreter.id().clone(),
                status: InterpreterStatus::Deleting,
                last_updated_at: self.clock.now(),
            },
        )
    }
}

/// Its identifier, also before its controller has looked at it.
fn id_of(object: &CodeInterpreter) -> Result<InterpreterId, ServiceError> {
    object.identifier().parse().map_err(|_| {
        ServiceError::InternalServer("the interpreter has no identifier yet; try again".to_owned())
    })
}

fn created_at(object: &CodeInterpreter) -> Timestamp {
    object
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or(Timestamp::UNIX_EPOCH, |time| time.0)
}

fn stalled(object: &CodeInterpreter) -> Option<String> {
    object
        .status
        .as_ref()?
        .conditions
        .iter()
        .find(|condition| condition.type_ == condition::STALLED && condition.status == "True")
        .map(|condition| condition.message.clone())
}

fn status_of(object: &CodeInterpreter) -> InterpreterStatus {
    if object.metadata.deletion_timestamp.is_some() {
        return InterpreterStatus::Deleting;
    }
    if stalled(object).is_some() {
        return InterpreterStatus::CreateFailed;
    }
    let known = object
        .status
        .as_ref()
        .is_some_and(|status| status.template.is_some());
    if known {
        InterpreterStatus::Ready
    } else {
        InterpreterStatus::Creating
    }
}
