//! SVG drawing of a group's topology: members on a circle, ordered by site, and their links.
//!
//! Sans-I/O.

use std::f64::consts::TAU;
use std::fmt::Write as _;

use crate::status::{GroupStatus, MemberStatus, TopologyLink};

/// The picture's width and height.
const SIZE: f64 = 640.0;
/// Margin around the circle, for addresses.
const MARGIN: f64 = 150.0;
/// Maximum number of members for which addresses, and costs of the tree's links, are written out.
const LABELED_MEMBERS_MAX: usize = 40;
/// Longest address shown, in characters; the rest of a longer one is left out.
const ADDRESS_CHARS_MAX: usize = 24;
/// Colors that differ clearly on light and dark pages; sites take them in turn.
const COLORS: [&str; 8] =
    ["#2f7fc1", "#c8641e", "#3a9448", "#a04fb0", "#b8860b", "#c2405a", "#2a9d9d", "#7a6ad8"];

/// Draws the topology for a page, in the page's text color.
pub fn inline(group: &GroupStatus) -> String {
    draw(group, "")
}

/// Draws the topology as a separate file, in a color that is visible on white and on black: our
/// policy ([`web::headers::POLICY`]) forbids a style sheet in the file that could adapt the color.
pub fn standalone(group: &GroupStatus) -> String {
    draw(group, " color=\"#6b7280\"")
}

struct DrawnMember<'a> {
    member: &'a MemberStatus,
    x: f64,
    y: f64,
    angle: f64,
    color: &'static str,
}

fn draw(group: &GroupStatus, color_attribute: &str) -> String {
    let mut members: Vec<&MemberStatus> = group.members.iter().collect();
    members.sort_by(|a, b| (&a.site, &a.id).cmp(&(&b.site, &b.id)));
    let mut sites: Vec<&str> = members.iter().map(|it| it.site.as_str()).collect();
    sites.dedup();
    let (count, radius) = (members.len(), SIZE / 2.0 - MARGIN);
    let drawn_members: Vec<DrawnMember<'_>> = members
        .iter()
        .enumerate()
        .map(|(at, member)| {
            let angle = TAU * at as f64 / count.max(1) as f64 - TAU / 4.0;
            let site = sites.iter().position(|it| *it == member.site).unwrap_or_default();
            let color = COLORS.get(site % COLORS.len()).copied().unwrap_or("currentColor");
            let (x, y) = (SIZE / 2.0 + radius * angle.cos(), SIZE / 2.0 + radius * angle.sin());
            DrawnMember { member, x, y, angle, color }
        })
        .collect();
    let title =
        format!("Topology of {}: {} members, {} links", group.name, count, group.topology.len());
    let title = web::templates::escape(&title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIZE} {SIZE}\" role=\"img\" \
         font-family=\"system-ui,sans-serif\" font-size=\"12\"{color_attribute}>\
         <title>{title}</title>"
    );
    for link in &group.topology {
        draw_link(&mut svg, link, &drawn_members);
    }
    for drawn in &drawn_members {
        draw_member(&mut svg, drawn, group, count);
    }
    svg.push_str("</svg>");
    svg
}

fn draw_link(svg: &mut String, link: &TopologyLink, drawn_members: &[DrawnMember<'_>]) {
    let find = |id: &str| drawn_members.iter().find(|it| it.member.id == id);
    let (Some(a), Some(b)) = (find(&link.a), find(&link.b)) else { return };
    let look = if link.is_tree {
        "stroke-width=\"2.5\""
    } else {
        "stroke-width=\"1\" stroke-dasharray=\"5 4\" opacity=\"0.7\""
    };
    // Writing to a String cannot fail.
    let _ = write!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"currentColor\" {look}>\
         <title>{}</title></line>",
        a.x,
        a.y,
        b.x,
        b.y,
        web::templates::escape(&format!("{} – {}: {}", link.a, link.b, cost(link))),
    );
    if drawn_members.len() <= LABELED_MEMBERS_MAX && link.is_tree {
        let (x, y) = (f64::midpoint(a.x, b.x), f64::midpoint(a.y, b.y));
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10\" \
             paint-order=\"stroke\" stroke=\"Canvas\" stroke-width=\"3\" fill=\"currentColor\">{}</text>",
            y - 4.0,
            web::templates::escape(&cost(link)),
        );
    }
}

fn draw_member(svg: &mut String, drawn: &DrawnMember<'_>, group: &GroupStatus, count: usize) {
    let DrawnMember { member, x, y, angle, color } = drawn;
    let leads = group.leader.as_ref() == Some(&member.id);
    let radius = if count <= LABELED_MEMBERS_MAX { 8.0 } else { 4.0 };
    let fill = if member.is_silent { "none" } else { color };
    let ring = if leads { "stroke=\"currentColor\" stroke-width=\"3\"" } else { "" };
    let ring = if member.is_silent {
        format!("stroke=\"{color}\" stroke-dasharray=\"2 2\"")
    } else {
        ring.to_owned()
    };
    let state = match (leads, member.is_silent) {
        (true, true) => ", leads, silent",
        (true, false) => ", leads",
        (false, true) => ", silent",
        (false, false) => "",
    };
    let description = format!("{} at {} ({}){state}", member.id, member.address, member.site);
    let _ = write!(
        svg,
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"{fill}\" {ring}><title>{}</title></circle>",
        web::templates::escape(&description),
    );
    if count <= LABELED_MEMBERS_MAX {
        let (dx, dy) = (14.0 * angle.cos(), 14.0 * angle.sin());
        let anchor = if dx.abs() < 4.0 {
            "middle"
        } else if dx < 0.0 {
            "end"
        } else {
            "start"
        };
        let shown: String = member.address.chars().take(ADDRESS_CHARS_MAX).collect();
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" fill=\"currentColor\">{}</text>",
            x + dx,
            y + dy + 4.0,
            web::templates::escape(&shown),
        );
    }
}

/// Returns the cost of a link as short text: round trip and bandwidth.
pub fn cost(link: &TopologyLink) -> String {
    let trip = link
        .round_trip_ms
        .map(|it| if it < 10.0 { format!("{it:.1} ms") } else { format!("{it:.0} ms") });
    let rate = link.bandwidth.map(|it| format!("{}/s", web::templates::size(it)));
    let parts: Vec<String> = trip.into_iter().chain(rate).collect();
    if parts.is_empty() { "not measured yet".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(members: usize) -> GroupStatus {
        let member = |at: usize| MemberStatus {
            id: format!("{at:016x}"),
            address: format!("h{at}.<example>:4000"),
            site: format!("s{}", at % 3),
            is_silent: at == 2,
            ..MemberStatus::default()
        };
        let link = |a: usize, b: usize, is_tree| TopologyLink {
            a: format!("{a:016x}"),
            b: format!("{b:016x}"),
            is_tree,
            round_trip_ms: Some(4.25),
            bandwidth: Some(1_000_000),
        };
        let tree = (1..members).map(|it| link(0, it, true));
        GroupStatus {
            name: "g".to_owned(),
            leader: Some(format!("{:016x}", 0)),
            members: (0..members).map(member).collect(),
            topology: tree.chain([link(1, 2, false)]).collect(),
            ..GroupStatus::default()
        }
    }

    #[test]
    fn each_member_and_link_is_drawn_and_text_is_escaped() {
        for members in [0, 1, 3, 12, 60] {
            let group = group(members);
            let svg = standalone(&group);
            let count = |what: &str| svg.matches(what).count();
            let links = group.topology.iter();
            let known = links.filter(|it| group.members.iter().any(|m| m.id == it.b)).count();
            assert_eq!((count("<circle"), count("<line")), (members, known), "{svg}");
            assert!(!svg.contains("<example>") && svg.ends_with("</svg>"));
            assert_eq!(count("4.2 ms") > 0, members > 1, "{svg}");
        }
    }
}
