//! Answers of walls as they come, and of ordinary pages that have some of their marks:
//! `recorded.txt`. They are written anew after real ones, of which they have the shape, the fields
//! and the marks, and no code.

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(&'static str, &'static str)>,
    pub(crate) body: &'static str,
    /// How the message begins that names the wall; `None`: it is no wall.
    pub(crate) named: Option<String>,
}

/// Returns all answers. Each has a line `>>> STATUS WALL challenges`, `>>> STATUS WALL refuses` or
/// `>>> STATUS no wall`, its fields, an empty line, and its body.
pub(crate) fn all() -> Vec<Recorded> {
    let answers = include_str!("recorded.txt").split("\n>>> ").skip(1);
    let answer = |text: &'static str| {
        let (head, body) = text.split_once("\n\n").unwrap();
        let (first, fields) = head.split_once('\n').unwrap();
        let (status, wall) = first.split_once(' ').unwrap();
        Recorded {
            status: status.parse().unwrap(),
            fields: fields.lines().map(|it| it.split_once(": ").unwrap()).collect(),
            body,
            named: (wall != "no wall").then(|| format!("{wall} this robot")),
        }
    };
    answers.map(answer).collect()
}
