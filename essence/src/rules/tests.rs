use proptest::prelude::*;

use super::*;

fn record() -> Record {
    let mut record = Record::new("FILE", "http://h.example/users/x.html");
    record.push("Title", "It's here");
    record.push("Type", "HTML");
    record.push("City", "New York");
    record.push("MD5", "d41d8cd98f00b204e9800998ecf8427e");
    record
}

fn no_command(command: &str, _input: &[u8]) -> Result<Vec<u8>, String> {
    panic!("{command} must not be run");
}

fn holds(condition: &str) -> bool {
    let rules = Rules::parse(&format!("{condition}\n\tX = \"y\"\n")).unwrap();
    !rules.apply(&mut record(), &mut no_command).1.is_empty()
}

#[test]
fn conditions_hold_or_do_not() {
    for (condition, expected) in [
        ("City == 'New York'", true),
        ("city=='New York'", true),
        ("City == \"new york\"", false),
        ("City != 'New York'", false),
        ("URL ~ /users/", true),
        ("URL !~ /users/", false),
        ("url ~ /^http:\\/\\/h\\.example\\//", true),
        ("City ~ /new/", false),
        ("City ~ /new/i", true),
        ("Title == 'It\\'s here'", true),
        ("Absent == ''", true),
        ("Absent ~ /^$/", true),
        ("Absent != 'x'", true),
        ("Type == 'PDF' || Type == 'HTML' && City == 'Rome'", false),
        ("(Type == 'PDF' || Type == 'HTML') && City == 'New York'", true),
        ("Type == 'HTML' || Type == 'PDF' && City == 'Rome'", true),
    ] {
        assert_eq!(holds(condition), expected, "{condition}");
    }
}

#[test]
fn instructions_are_carried_out_in_order() {
    let text = "# a comment\n\nType == 'HTML'\n    Time-to-Live = \"86400\"\n\tCity | upper\n\
                \tTitle,City ! swap\nCity == 'TITLE'\n  Seen = 'yes'\nTitle ~ /./\n\tType = ''\n";
    let rules = Rules::parse(text).unwrap();
    let mut record = record();
    let mut run = |command: &str, input: &[u8]| match command {
        "upper" => Ok([&input.to_ascii_uppercase()[..], b"\n"].concat()),
        "swap" => {
            assert_eq!(
                String::from_utf8_lossy(input),
                "@FILE { http://h.example/users/x.html\nTitle{9}:\tIt's here\nCity{8}:\tNEW YORK\n}\n"
            );
            Ok(b"@FILE { -\nTitle{8}:\tNEW YORK\nCity{5}:\tTITLE\n}\n".to_vec())
        }
        other => panic!("{other}"),
    };
    let (verdict, applied) = rules.apply(&mut record, &mut run);
    assert_eq!(verdict, Verdict::Kept);
    assert_eq!(applied.iter().map(|it| it.line).collect::<Vec<_>>(), [3, 7, 9]);
    assert!(applied.iter().flat_map(|it| &it.done).all(|(_, outcome)| outcome.is_ok()));
    let values = |name: &str| record.text(name).map(|it| it.into_owned());
    assert_eq!(values("Time-to-Live").as_deref(), Some("86400"));
    assert_eq!(values("Title").as_deref(), Some("NEW YORK"));
    assert_eq!(values("City").as_deref(), Some("TITLE"));
    assert_eq!(values("Seen").as_deref(), Some("yes"));
    assert_eq!(values("Type"), None);
}

#[test]
fn a_rule_may_leave_the_object_out() {
    let text = "Type == 'HTML'\n\tdelete()\nURL ~ /./\n\tX = 'y'\n";
    let mut record = record();
    let (verdict, applied) = Rules::parse(text).unwrap().apply(&mut record, &mut no_command);
    assert_eq!((verdict, applied.len()), (Verdict::Deleted, 1));
    assert_eq!(record.get("X"), None);
}

#[test]
fn a_command_that_fails_leaves_the_record() {
    let text = "Type == 'HTML'\n\tCity | broken\n\tTitle,City ! garbled\n\tNone | unasked\n";
    let mut changed = record();
    let mut run = |command: &str, _input: &[u8]| match command {
        "broken" => Err("exit status 1".to_owned()),
        "garbled" => Ok(b"@FILE { x\nTitle{99}:\tshort\n}\n".to_vec()),
        other => panic!("{other}"),
    };
    let (_, applied) = Rules::parse(text).unwrap().apply(&mut changed, &mut run);
    assert_eq!(changed, record());
    let done = &applied[0].done;
    assert_eq!(done[0].1, Err("exit status 1".to_owned()));
    assert!(
        done[1].1.as_ref().unwrap_err().contains("output of `garbled` is not SOIF"),
        "{done:?}"
    );
    assert_eq!(done[2].1, Ok(()));
}

#[test]
fn mistakes_name_their_lines() {
    let text = "\tX = 'y'\nType = 'HTML'\n\tX = 'y'\nType == HTML\nURL ~ /(/\n\tX y\n\
                City == 'x' Type == 'y'\n(City == 'x'\nType == 'x'\nURL ~ /x/\n\tMD5 = 'x'\n\
                \tA,B = 'x'\n\tA |\n\tA = 'x\n\tLanguage == \"en\"\n\tÄ~ /x/ \n\tA != 'x'\n\tA = 'y' x\n";
    let mistakes = Rules::parse(text).unwrap_err();
    let shown: Vec<String> = mistakes.iter().map(Mistake::to_string).collect();
    let expected = [
        "1:2: an instruction comes below a condition",
        "2:6: `==`, `!=`, `~` or `!~` is missing behind `Type`",
        "4:9: a string in quotes is missing",
        "5:7: /(/ is no regular expression",
        "6:2: `X y` is no instruction; expected Attribute = \"value\", Attribute | command, ",
        "7:13: `Type == 'y'` is not expected here; expected comparisons such as Type == 'HTML', ",
        "8:13: `)` is missing",
        "9:1: the condition has no instructions",
        "11:2: MD5 cannot be changed",
        "12:6: one attribute, not 2",
        "13:5: a command is missing",
        "14:6: the closing ' is missing",
        "15:11: `==` compares: conditions begin in the first column, and an instruction sets its \
         attribute with one `=`; expected Attribute = \"value\", ",
        "16:3: `~` compares",
        "17:4: `!=` compares",
        "18:10: `x` is not expected behind the value",
    ];
    for (shown, expected) in shown.iter().zip(expected) {
        assert!(shown.starts_with(expected), "{shown} for {expected}");
    }
    assert_eq!(shown.len(), expected.len(), "{shown:?}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "([ \t]?[A-Za-z]{1,3} ?(==|!=|~|!~|=|[|]|!|&&) ?['/\"()x\\\\]{0,4}\n?){0,6}") {
        if let Ok(rules) = Rules::parse(&text) {
            rules.apply(&mut record(), &mut |_, input| Ok(input.to_vec()));
        }
    }

    #[test]
    fn values_come_through_quotes(value in "[ -~]{0,20}") {
        prop_assume!(!value.contains('\\'));
        let text = format!("URL ~ /./\n\tX = \"{}\"\n", value.replace('"', "\\\""));
        let mut changed = record();
        Rules::parse(&text).unwrap().apply(&mut changed, &mut no_command);
        prop_assert_eq!(changed.text("X").unwrap_or_default(), value);
    }
}

#[test]
fn a_command_with_refused_output_changes_nothing() {
    let rules = Rules::parse("Type == 'HTML'\n\tTitle,City ! script\n").unwrap();
    for written in ["Title{1}:\tx\nMD5{1}:\t0\n".to_owned(), {
        let long = "x".repeat(VALUE_BYTES_MAX + 1);
        format!("Title{{1}}:\tx\nCity{{{}}}:\t{long}\n", long.len())
    }] {
        let mut changed = record();
        let mut run = |_: &str, _: &[u8]| Ok(format!("@FILE {{ -\n{written}}}\n").into_bytes());
        let (_kept, applied) = rules.apply(&mut changed, &mut run);
        assert!(applied[0].done[0].1.is_err());
        assert_eq!(changed, record());
    }
}
