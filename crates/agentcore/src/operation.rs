//! The nine operations.

use http::StatusCode;

/// An operation of the data plane (sessions) or of the control plane (interpreters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// `StartCodeInterpreterSession`
    StartSession,
    /// `InvokeCodeInterpreter`
    InvokeSession,
    /// `GetCodeInterpreterSession`
    GetSession,
    /// `ListCodeInterpreterSessions`
    ListSessions,
    /// `StopCodeInterpreterSession`
    StopSession,
    /// `CreateCodeInterpreter`
    CreateInterpreter,
    /// `GetCodeInterpreter`
    GetInterpreter,
    /// `ListCodeInterpreters`
    ListInterpreters,
    /// `DeleteCodeInterpreter`
    DeleteInterpreter,
}

impl Operation {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::StartSession,
        Self::InvokeSession,
        Self::GetSession,
        Self::ListSessions,
        Self::StopSession,
        Self::CreateInterpreter,
        Self::GetInterpreter,
        Self::ListInterpreters,
        Self::DeleteInterpreter,
    ];

    /// The name in the service model, which is what clients call it; for logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::StartSession => "StartCodeInterpreterSession",
            Self::InvokeSession => "InvokeCodeInterpreter",
            Self::GetSession => "GetCodeInterpreterSession",
            Self::ListSessions => "ListCodeInterpreterSessions",
            Self::StopSession => "StopCodeInterpreterSession",
            Self::CreateInterpreter => "CreateCodeInterpreter",
            Self::GetInterpreter => "GetCodeInterpreter",
            Self::ListInterpreters => "ListCodeInterpreters",
            Self::DeleteInterpreter => "DeleteCodeInterpreter",
        }
    }

    /// The status of its success. Making and deleting an interpreter is only begun when it is answered.
    pub fn success_status(self) -> StatusCode {
        match self {
            Self::CreateInterpreter | Self::DeleteInterpreter => StatusCode::ACCEPTED,
            Self::StartSession
            | Self::InvokeSession
            | Self::GetSession
            | Self::ListSessions
            | Self::StopSession
            | Self::GetInterpreter
            | Self::ListInterpreters => StatusCode::OK,
        }
    }
}
