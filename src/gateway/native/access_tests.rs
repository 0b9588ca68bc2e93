use codeworkspace_source::ManualClock;
use http::HeaderValue;
use serde_json::json;

use super::super::tests::fake_api::FakeReviews;
use super::*;

const START: &str = "2026-01-01T00:00:00Z";

fn access(reviews: &FakeReviews) -> (Access, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START.parse().unwrap()));
    (Access::new(reviews.client(), clock.clone()), clock)
}

fn bearer(token: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(
        AUTHORIZATION,
        HeaderValue::from_str(&format!("Bearer {token}")).unwrap(),
    );
    headers
}

/// A token that says when it ends.
fn ending(seconds_from_start: i64) -> String {
    let end = START.parse::<Timestamp>().unwrap().as_second() + seconds_from_start;
    let claims = URL_SAFE_NO_PAD.encode(json!({"exp": end}).to_string());
    format!("head.{claims}.signature")
}

#[tokio::test]
async fn a_token_is_reviewed_once_and_again_after_a_while() {
    let reviews = FakeReviews::default();
    reviews.knows("token", "alice");
    let (access, clock) = access(&reviews);
    for _ in 0..3 {
        assert_eq!(access.caller(&bearer("token")).await.unwrap().name(), "alice");
    }
    assert_eq!(reviews.asked(), 1);
    clock.advance(BELIEVED);
    reviews.forgets("token");
    let refused = access.caller(&bearer("token")).await.unwrap_err();
    assert_eq!((refused, reviews.asked()), (AccessError::BadToken, 2));
}

#[tokio::test]
async fn a_token_is_not_believed_beyond_its_own_end() {
    let reviews = FakeReviews::default();
    let token = ending(3);
    reviews.knows(&token, "alice");
    let (access, clock) = access(&reviews);
    access.caller(&bearer(&token)).await.unwrap();
    reviews.forgets(&token);
    clock.advance(Duration::from_secs(2));
    access.caller(&bearer(&token)).await.unwrap();
    clock.advance(Duration::from_secs(1));
    assert_eq!(
        access.caller(&bearer(&token)).await.unwrap_err(),
        AccessError::BadToken
    );
}

#[tokio::test]
async fn a_token_for_another_audience_is_none() {
    let reviews = FakeReviews::default();
    reviews.knows_for("token", "alice", &["https://kubernetes.default.svc"]);
    let (access, _) = access(&reviews);
    assert_eq!(
        access.caller(&bearer("token")).await.unwrap_err(),
        AccessError::BadToken
    );
    reviews.knows_for("silent", "alice", &[]);
    assert_eq!(
        access.caller(&bearer("silent")).await.unwrap_err(),
        AccessError::BadToken
    );
}

#[tokio::test]
async fn without_a_token_nothing_is_asked() {
    let reviews = FakeReviews::default();
    let (access, _) = access(&reviews);
    let mut basic = HeaderMap::new();
    basic.insert(AUTHORIZATION, HeaderValue::from_static("Basic YTpi"));
    for headers in [HeaderMap::new(), basic, bearer("")] {
        assert_eq!(access.caller(&headers).await.unwrap_err(), AccessError::NoToken);
    }
    assert_eq!(reviews.asked(), 0);
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_lets_nobody_in() {
    let reviews = FakeReviews::default();
    reviews.knows("token", "alice");
    reviews.permits("alice", "create", "team");
    let (access, clock) = access(&reviews);
    let caller = access.caller(&bearer("token")).await.unwrap();
    access.check(&caller, Right::Create, "team", None).await.unwrap();
    reviews.breaks();
    clock.advance(BELIEVED);
    assert_eq!(
        access.caller(&bearer("token")).await.unwrap_err(),
        AccessError::Unknown
    );
    let refused = access.check(&caller, Right::Create, "team", None).await;
    assert_eq!(refused, Err(AccessError::Unknown));
}

#[tokio::test]
async fn a_right_holds_for_its_verb_namespace_and_session_alone_and_a_new_one_at_once() {
    let reviews = FakeReviews::default();
    reviews.knows("token", "alice");
    reviews.knows("other", "bob");
    let (access, _) = access(&reviews);
    let alice = access.caller(&bearer("token")).await.unwrap();
    let bob = access.caller(&bearer("other")).await.unwrap();
    let refused = access.check(&alice, Right::Create, "team", None).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "alice may not create codesessions.codeworkspace.dev in namespace team"
    );
    reviews.permits("alice", "create", "team");
    let before = reviews.asked();
    for _ in 0..2 {
        access.check(&alice, Right::Create, "team", None).await.unwrap();
    }
    assert_eq!(reviews.asked(), before + 1);
    access
        .check(&alice, Right::Create, "team", Some("s1"))
        .await
        .unwrap();
    assert_eq!(reviews.asked(), before + 2);
    for (caller, right, namespace) in [
        (&alice, Right::Delete, "team"),
        (&alice, Right::Create, "other"),
        (&bob, Right::Create, "team"),
    ] {
        let refused = access.check(caller, right, namespace, None).await;
        assert!(
            matches!(refused, Err(AccessError::Forbidden { .. })),
            "{right:?} {namespace}"
        );
    }
}
