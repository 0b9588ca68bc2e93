//! Errors as clients know them: the exact names, statuses and bodies, as an HTTP answer or as an event of a stream.

#[cfg(test)]
mod tests;

use http::StatusCode;
use serde::Serialize;
use thiserror::Error;

use crate::{
    operation::Operation, route::RouteError, signature::SignatureError, validation::ValidationError,
};

/// The header that carries an error's name.
pub const ERROR_TYPE_HEADER: &str = "x-amzn-errortype";

/// An error of the service model, with a message for people, which must not be empty.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ServiceError {
    /// `AccessDeniedException`, 403: known, but not allowed to.
    #[error("{0}")]
    AccessDenied(String),
    /// `ConflictException`, 409: not in the state that there is; later perhaps.
    #[error("{0}")]
    Conflict(String),
    /// `InternalServerException`, 500: a fault of the service.
    #[error("{0}")]
    InternalServer(String),
    /// `ResourceNotFoundException`, 404: no such interpreter or session, or none any more.
    #[error("{0}")]
    ResourceNotFound(String),
    /// `ServiceQuotaExceededException`, 402 as the model has it: the tenant has as many as it may have.
    #[error("{0}")]
    ServiceQuotaExceeded(String),
    /// `ThrottlingException`, 429: the tenant calls too often.
    #[error("{0}")]
    Throttling(String),
    /// `ValidationException`, 400: the request is wrong.
    #[error(transparent)]
    Validation(#[from] ValidationError),
}

impl ServiceError {
    /// The name in the service model.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AccessDenied(_) => "AccessDeniedException",
            Self::Conflict(_) => "ConflictException",
            Self::InternalServer(_) => "InternalServerException",
            Self::ResourceNotFound(_) => "ResourceNotFoundException",
            Self::ServiceQuotaExceeded(_) => "ServiceQuotaExceededException",
            Self::Throttling(_) => "ThrottlingException",
            Self::Validation(_) => "ValidationException",
        }
    }

    /// The member of the event stream's union. Clients see this spelling when the error comes after the first event.
    pub fn stream_member(&self) -> &'static str {
        match self {
            Self::AccessDenied(_) => "accessDeniedException",
            Self::Conflict(_) => "conflictException",
            Self::InternalServer(_) => "internalServerException",
            Self::ResourceNotFound(_) => "resourceNotFoundException",
            Self::ServiceQuotaExceeded(_) => "serviceQuotaExceededException",
            Self::Throttling(_) => "throttlingException",
            Self::Validation(_) => "validationException",
        }
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::AccessDenied(_) => StatusCode::FORBIDDEN,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::InternalServer(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::ResourceNotFound(_) => StatusCode::NOT_FOUND,
            Self::ServiceQuotaExceeded(_) => StatusCode::PAYMENT_REQUIRED,
            Self::Throttling(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Validation(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// Whether the model lists the error for the operation. A client has no class for one that is not listed.
    pub fn is_listed_for(&self, operation: Operation) -> bool {
        use Operation as O;
        match self {
            Self::AccessDenied(_) | Self::InternalServer(_) | Self::Throttling(_) => true,
            Self::Conflict(_) => matches!(
                operation,
                O::StartSession
                    | O::InvokeSession
                    | O::StopSession
                    | O::CreateInterpreter
                    | O::DeleteInterpreter
            ),
            Self::ServiceQuotaExceeded(_) => {
                !matches!(operation, O::GetSession | O::ListSessions | O::ListInterpreters)
            }
            Self::ResourceNotFound(_) => !matches!(operation, O::CreateInterpreter | O::ListInterpreters),
            Self::Validation(_) => operation != O::GetInterpreter,
        }
    }

    /// The error as the operation may answer it: itself, or the listed one that comes nearest, with the same message.
    #[must_use]
    pub fn listed_for(self, operation: Operation) -> Self {
        if self.is_listed_for(operation) {
            return self;
        }
        match self {
            Self::ServiceQuotaExceeded(message) => Self::Throttling(message),
            Self::ResourceNotFound(message) => Self::AccessDenied(message),
            Self::Validation(error) => Self::ResourceNotFound(error.message().to_owned()),
            Self::Conflict(message)
            | Self::AccessDenied(message)
            | Self::InternalServer(message)
            | Self::Throttling(message) => Self::InternalServer(message),
        }
    }

    /// The JSON of the error, the same in an answer and in an event.
    pub fn body(&self) -> Vec<u8> {
        match self {
            Self::Validation(error) => json(error),
            Self::AccessDenied(message)
            | Self::Conflict(message)
            | Self::InternalServer(message)
            | Self::ResourceNotFound(message)
            | Self::ServiceQuotaExceeded(message)
            | Self::Throttling(message) => message_body(message),
        }
    }

    /// The answer to a call of the operation.
    pub fn answer(self, operation: Operation) -> ErrorAnswer {
        let listed = self.listed_for(operation);
        ErrorAnswer {
            status: listed.status(),
            error_type: listed.name(),
            allow: None,
            body: listed.body(),
        }
    }
}

/// An error as an HTTP answer, with `content-type: application/json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorAnswer {
    /// The status.
    pub status: StatusCode,
    /// For the header [`ERROR_TYPE_HEADER`].
    pub error_type: &'static str,
    /// For the header `Allow`, if the method was wrong.
    pub allow: Option<&'static str>,
    /// JSON.
    pub body: Vec<u8>,
}

impl From<RouteError> for ErrorAnswer {
    fn from(error: RouteError) -> Self {
        let (status, allow) = match error {
            RouteError::UnknownPath => (StatusCode::NOT_FOUND, None),
            RouteError::WrongMethod { allow } => (StatusCode::METHOD_NOT_ALLOWED, Some(allow)),
            RouteError::Identifier {
                operation,
                member,
                error,
            } => {
                let error = ValidationError::field(member, &error.to_string());
                return ServiceError::from(error).answer(operation);
            }
        };
        Self {
            status,
            error_type: "UnknownOperationException",
            allow,
            body: message_body(&error.to_string()),
        }
    }
}

impl From<SignatureError> for ErrorAnswer {
    fn from(error: SignatureError) -> Self {
        Self {
            status: StatusCode::FORBIDDEN,
            error_type: error.name(),
            allow: None,
            body: message_body(&error.to_string()),
        }
    }
}

#[derive(Serialize)]
struct MessageBody<'a> {
    message: &'a str,
}

fn message_body(message: &str) -> Vec<u8> {
    json(&MessageBody { message })
}

/// Structures of strings always become JSON; an empty object would still be an answer.
fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|_| b"{}".to_vec())
}
