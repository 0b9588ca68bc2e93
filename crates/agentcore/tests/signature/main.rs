//! Signatures of the stock clients, recorded at a socket, are taken; whatever is changed in them is noticed.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod mutations;
mod recorded;

use codeworkspace_agentcore::{
    identifier::InterpreterId, operation::Operation, query::Query, route::route, shapes, signature, tools,
};
use jiff::SignedDuration;

use recorded::{Recording, Request};

#[test]
fn what_the_stock_clients_sign_is_verified() {
    let recording = Recording::read();
    assert_eq!(recording.requests.len(), 26);
    for request in &recording.requests {
        let found = request.verify(&recording.secret, request.signed_at());
        assert_eq!(found, Ok(()), "{}", request.name);
    }
}

#[test]
fn clocks_may_be_five_minutes_apart() {
    let recording = Recording::read();
    let request = &recording.requests[0];
    let signed_at = request.signed_at();
    for (seconds, expected) in [
        (-301, Some("signature not yet current")),
        (-300, None),
        (300, None),
        (301, Some("signature expired")),
    ] {
        let now = signed_at + SignedDuration::from_secs(seconds);
        let found = request.verify(&recording.secret, now);
        match expected {
            None => assert_eq!(found, Ok(()), "{seconds}"),
            Some(expected) => {
                let error = found.unwrap_err();
                assert_eq!(error.name(), "InvalidSignatureException");
                assert!(error.to_string().starts_with(expected), "{error}");
            }
        }
    }
}

#[test]
fn what_a_signature_covers_can_be_asked() {
    let recording = Recording::read();
    let invocation = |client: &str| {
        let name = format!("{client} InvokeCodeInterpreter");
        let request = recording.requests.iter().find(|request| request.name == name);
        request.unwrap().parse(request.unwrap().signed_at()).unwrap()
    };
    let [python, javascript] = ["boto3", "@aws-sdk"].map(invocation);
    assert_eq!(python.access_key_id().as_str(), recording.access_key_id);
    assert_eq!(python.scope().region, recording.region);
    assert_eq!(python.scope().service, signature::SIGNING_NAME);
    for request in [&python, &javascript] {
        assert!(request.signs("host") && request.signs(shapes::SESSION_ID_HEADER));
        assert!(!request.signs("user-agent"));
    }
    // The id that a client repeats with a repeated request is signed by one of them only.
    assert!(!python.signs("amz-sdk-invocation-id"));
    assert!(javascript.signs("amz-sdk-invocation-id"));
}

#[test]
fn what_the_stock_clients_send_is_understood() {
    let recording = Recording::read();
    let mut operations = Vec::new();
    for request in &recording.requests {
        let Some(operation) = request.operation() else {
            continue;
        };
        let found = route(&request.method, &request.path).unwrap();
        assert_eq!(found.operation(), operation, "{}", request.name);
        assert_eq!(understood(request, operation), Ok(()), "{}", request.name);
        operations.push(operation);
    }
    for operation in Operation::ALL {
        let times = operations.iter().filter(|found| **found == operation).count();
        assert!(times >= 2, "both clients call {operation:?}");
    }
    assert_eq!(InterpreterId::SYSTEM, "aws.codeinterpreter.v1");
}

fn understood(
    request: &Request,
    operation: Operation,
) -> Result<(), codeworkspace_agentcore::validation::ValidationError> {
    let query = Query::new(request.query.as_deref());
    let body = &request.body;
    match operation {
        Operation::StartSession => {
            shapes::Trace::from_headers(&request.headers)?;
            let start = shapes::StartSessionRequest::parse(body)?;
            assert!(start.client_token.is_some() && start.name.unwrap().ends_with("näme"));
        }
        Operation::InvokeSession => {
            shapes::invoked_session(&request.headers)?;
            tools::parse(body)?;
        }
        Operation::GetSession => drop(shapes::GetSessionRequest::parse(query)?),
        Operation::ListSessions => drop(shapes::ListSessionsRequest::parse(body)?),
        Operation::StopSession => {
            assert!(
                shapes::StopSessionRequest::parse(query, body)?
                    .client_token
                    .is_some()
            );
        }
        Operation::CreateInterpreter => drop(shapes::CreateInterpreterRequest::parse(body)?),
        Operation::GetInterpreter => {}
        Operation::ListInterpreters => {
            let list = shapes::ListInterpretersRequest::parse(query);
            // Both were recorded with a space in the token, to see how clients encode one.
            assert_eq!(
                list.unwrap_err().message(),
                "nextToken: must be the nextToken of an earlier answer: 1 to 2048 characters without space"
            );
        }
        Operation::DeleteInterpreter => {
            assert!(
                shapes::DeleteInterpreterRequest::parse(query)?
                    .client_token
                    .is_some()
            );
        }
    }
    Ok(())
}
