//! Pages of lists. The token says where the next page begins, so that no replica has to remember anything, and objects that come or go
//! in between are neither repeated nor skipped.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use codeworkspace_agentcore::shapes::NextToken;
use codeworkspace_agentcore::validation::ValidationError;
use jiff::Timestamp;

/// The place of an object in a list: the youngest first, then by name.
type Place = (Timestamp, String);

/// One page of `items`, which are in the order of their places, and the token of the next one.
pub fn page<T>(
    items: Vec<T>,
    length: u32,
    token: Option<&NextToken>,
    place: impl Fn(&T) -> Place,
) -> Result<(Vec<T>, Option<NextToken>), ValidationError> {
    let after = token.map(|token| read(token.as_str())).transpose()?;
    let is_after = |item: &T| {
        after.as_ref().is_none_or(|(at, name)| {
            let (item_at, item_name) = place(item);
            item_at < *at || (item_at == *at && item_name > *name)
        })
    };
    let mut rest: Vec<T> = items.into_iter().filter(is_after).collect();
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let next = if rest.len() > length {
        rest.truncate(length);
        rest.last().map(|last| write(&place(last)))
    } else {
        None
    };
    Ok((rest, next.and_then(|token| token.parse().ok())))
}

fn write((at, name): &Place) -> String {
    URL_SAFE_NO_PAD.encode(format!("{} {name}", at.as_nanosecond()))
}

fn read(token: &str) -> Result<Place, ValidationError> {
    let read = || {
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let (at, name) = text.split_once(' ')?;
        let at = Timestamp::from_nanosecond(at.parse().ok()?).ok()?;
        Some((at, name.to_owned()))
    };
    read().ok_or_else(|| ValidationError::field("nextToken", "must be the nextToken of an earlier answer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(item: &(i64, &str)) -> Place {
        (Timestamp::from_second(item.0).unwrap(), item.1.to_owned())
    }

    #[test]
    fn pages_follow_each_other_although_objects_come_and_go() {
        let items = vec![(9, "a"), (9, "b"), (5, "a"), (1, "z")];
        let (first, token) = page(items.clone(), 2, None, place).unwrap();
        assert_eq!(first, [(9, "a"), (9, "b")]);
        let changed = vec![(10, "new"), (9, "a"), (5, "a"), (1, "z")];
        let (second, end) = page(changed, 2, token.as_ref(), place).unwrap();
        assert_eq!(second, [(5, "a"), (1, "z")]);
        assert_eq!(end, None);
    }

    #[test]
    fn a_token_that_was_not_given_out_is_refused() {
        for token in ["x", "MTIz", "____"] {
            let token: NextToken = token.parse().unwrap();
            assert!(page(vec![(1, "a")], 1, Some(&token), place).is_err());
        }
    }
}
