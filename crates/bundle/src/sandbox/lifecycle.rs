use crate::{
    field::FieldError,
    object::{Object, Shape},
    quote::Quoted,
};

/// The schema names events, the text of the same draft numbers and switches: both are in use.
const SHAPE: Shape = Shape {
    fields: &[
        "pause_after_idle",
        "pause_after_idle_ms",
        "destroy_on",
        "destroy_on_workspace_close",
    ],
    hints: &[],
};

/// What `destroy_on` asks for and what happens anyway: a pod ends with its run or session.
const CLOSE: &str = "workspace-close";

/// The idle timeout in milliseconds. Lifecycle features are advisory (AIP-36, "Conformance rules"): what can't be done is a warning.
pub(super) fn read(
    block: &Object<'_>,
    issues: &mut Vec<FieldError>,
    warnings: &mut Vec<String>,
) -> Option<u64> {
    let field = block.place("lifecycle");
    let lifecycle = Object::read(&field, block.get("lifecycle")?, &SHAPE, issues)?;
    if let Some(event) = lifecycle.string("destroy_on", issues)
        && event != CLOSE
    {
        warnings.push(format!(
            "{} names the event {}, which does not occur here: a pod ends with its run or session",
            lifecycle.place("destroy_on"),
            Quoted(event)
        ));
    }
    if lifecycle.boolean("destroy_on_workspace_close", issues) == Some(false) {
        warnings.push(format!(
            "{} can't be had: a pod ends with its run or session",
            lifecycle.place("destroy_on_workspace_close")
        ));
    }
    let by_event = lifecycle.string("pause_after_idle", issues).and_then(|event| {
        let idle = idle_milliseconds(event);
        if idle.is_none() {
            warnings.push(format!(
                "{} names the event {}, which does not occur here: write `idle-` and a number of seconds, as in `idle-600`",
                lifecycle.place("pause_after_idle"),
                Quoted(event)
            ));
        }
        idle
    });
    let by_number = lifecycle.count("pause_after_idle_ms", "milliseconds", issues);
    by_event.into_iter().chain(by_number).min()
}

/// `idle-600`: ten minutes without a call.
fn idle_milliseconds(event: &str) -> Option<u64> {
    let seconds: u64 = event.strip_prefix("idle-")?.parse().ok()?;
    seconds.checked_mul(1_000).filter(|idle| *idle > 0)
}
