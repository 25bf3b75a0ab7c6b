//! The text of hyper's own refusals, which have none: heads that are too large or cannot be read.
//!
//! The status is hyper's. Only the answer's length changes, so that a person sees what was wrong.

/// Returns the answer of hyper in `written` with a text; `None` if it is no refusal of a head.
pub(crate) fn with_text(written: &[u8], head_bytes_max: usize) -> Option<Vec<u8>> {
    let head = std::str::from_utf8(written).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?;
    let text = match status {
        "431" => format!(
            "the head of the request has more than {head_bytes_max} bytes or too many fields: shorten its URL \
             (a query, for example) or its fields\n"
        ),
        "400" => {
            "the head of the request is no HTTP/1.1: spaces and other special characters in a URL \
                  have to be written as %XX\n"
                .to_owned()
        }
        _ => return None,
    };
    let (start, end) = head.strip_suffix("\r\n\r\n")?.split_once("content-length: 0")?;
    let length = text.len();
    let kind = "content-type: text/plain; charset=utf-8";
    Some(format!("{start}{kind}\r\ncontent-length: {length}{end}\r\n\r\n{text}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refused_heads_get_a_text() {
        let of = |status: &str| {
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\ndate: x\r\n\r\n");
            with_text(answer.as_bytes(), 16_384).map(|it| String::from_utf8(it).unwrap())
        };
        let shown = of("431 Request Header Fields Too Large").unwrap();
        let (head, text) = shown.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("\r\ncontent-length: {}\r\ndate: x", text.len())), "{head}");
        assert!(text.contains("16384 bytes"), "{text}");
        assert!(of("400 Bad Request").unwrap().contains("%XX"));
        assert_eq!(of("404 Not Found"), None);
        assert_eq!(with_text(b"HTTP/1.1 431 \r\n\r\n", 1), None);
        assert_eq!(with_text(b"\xff", 1), None);
    }
}
