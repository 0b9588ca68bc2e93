//! The recording, and a request that can be changed.

use base64::{Engine, engine::general_purpose::STANDARD};
use codeworkspace_agentcore::{
    operation::Operation,
    signature::{self, ExpectedScope, Head, SignatureError, SignedRequest},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jiff::{Timestamp, fmt::rfc2822, fmt::strtime, tz::TimeZone};
use serde::Deserialize;
use sha2::{Digest, Sha256};

pub struct Recording {
    pub access_key_id: String,
    pub secret: String,
    pub region: String,
    pub requests: Vec<Request>,
}

#[derive(Clone)]
pub struct Request {
    pub name: String,
    pub method: Method,
    pub path: String,
    pub query: Option<String>,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    access_key_id: String,
    secret: String,
    region: String,
    requests: Vec<WrittenRequest>,
}

#[derive(Deserialize)]
struct WrittenRequest {
    name: String,
    method: String,
    path: String,
    query: Option<String>,
    headers: Vec<(String, String)>,
    body: String,
}

impl Recording {
    pub fn read() -> Self {
        let written: Written = serde_json::from_str(include_str!("../fixtures/signed.json")).unwrap();
        Self {
            access_key_id: written.access_key_id,
            secret: written.secret,
            region: written.region,
            requests: written.requests.into_iter().map(Request::from).collect(),
        }
    }
}

impl From<WrittenRequest> for Request {
    fn from(written: WrittenRequest) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in written.headers {
            headers.append(
                HeaderName::try_from(name).unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            );
        }
        Self {
            name: written.name,
            method: written.method.parse().unwrap(),
            path: written.path,
            query: written.query,
            headers,
            body: STANDARD.decode(written.body).unwrap(),
        }
    }
}

impl Request {
    /// What a client called, if it was a client.
    pub fn operation(&self) -> Option<Operation> {
        let called = self
            .name
            .strip_prefix("boto3 ")
            .or_else(|| self.name.strip_prefix("@aws-sdk "))?;
        let found = Operation::ALL
            .into_iter()
            .find(|operation| operation.name() == called);
        Some(found.unwrap())
    }

    pub fn signed_at(&self) -> Timestamp {
        let text = |name: &str| self.headers.get(name).map(|value| value.to_str().unwrap());
        match text("x-amz-date") {
            Some(written) => {
                let time = strtime::parse("%Y%m%dT%H%M%SZ", written).unwrap();
                let zoned = time.to_datetime().unwrap().to_zoned(TimeZone::UTC);
                zoned.unwrap().timestamp()
            }
            None => rfc2822::parse(text("date").unwrap()).unwrap().timestamp(),
        }
    }

    pub fn authorization(&self) -> &str {
        self.headers["authorization"].to_str().unwrap()
    }

    pub fn signed_headers(&self) -> Vec<String> {
        let (_, rest) = self.authorization().split_once("SignedHeaders=").unwrap();
        let (names, _) = rest.split_once(',').unwrap();
        names.split(';').map(str::to_owned).collect()
    }

    pub fn with_header(&self, name: &str, value: &str) -> Self {
        let mut changed = self.clone();
        let name = HeaderName::try_from(name).unwrap();
        changed.headers.insert(name, value.parse().unwrap());
        changed
    }

    pub fn parse(&self, now: Timestamp) -> Result<SignedRequest, SignatureError> {
        let head = Head {
            method: &self.method,
            path: &self.path,
            query: self.query.as_deref(),
            headers: &self.headers,
        };
        let expected = ExpectedScope {
            region: None,
            service: signature::SIGNING_NAME,
        };
        signature::parse(head, now, expected)
    }

    pub fn verify(&self, secret: &str, now: Timestamp) -> Result<(), SignatureError> {
        let hash = Sha256::digest(&self.body).into();
        self.parse(now)?.verify(secret.as_bytes(), &hash)
    }
}
