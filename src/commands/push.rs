//! The push part of a daemon's status: its subscribers and their notifications.

use exchange::push::Status;

use crate::output;

/// Returns the lines for a status; none without a hub or subscriptions.
pub(crate) fn status_lines(push: &Status) -> Vec<String> {
    let mut lines = Vec::new();
    if !push.hub.is_empty() && push.hub != "nobody" || 0 < push.subscriptions {
        let mut line = format!("push by {}: ", push.hub);
        line += &output::counted(push.subscriptions, "subscription");
        if 0 < push.unverified {
            line += &format!(" and {} to be verified", push.unverified);
        }
        line += &format!(", {} delivered", output::counted(push.delivered, "notification"));
        if 0 < push.given_up {
            line += &format!(", {} given up", push.given_up);
        }
        lines.push(line);
    }
    lines.extend(push.problem.iter().map(|it| format!("PROBLEM: push: {it}")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_count_subscriptions_and_notifications() {
        assert_eq!(status_lines(&Status::default()), Vec::<String>::new());
        let nobody = Status { hub: "nobody".to_owned(), ..Status::default() };
        assert_eq!(status_lines(&nobody), Vec::<String>::new());
        let mut own = Status { hub: "self".to_owned(), subscriptions: 2, ..Status::default() };
        assert_eq!(
            status_lines(&own),
            ["push by self: 2 subscriptions, 0 notifications delivered"]
        );
        (own.unverified, own.delivered, own.given_up) = (3, 1, 4);
        own.problem = Some("disk full".to_owned());
        let expected = [
            "push by self: 2 subscriptions and 3 to be verified, 1 notification delivered, 4 given up",
            "PROBLEM: push: disk full",
        ];
        assert_eq!(status_lines(&own), expected);
    }
}
