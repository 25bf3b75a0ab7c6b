use super::*;

const LEAST: &str = "data = \"d\"\naddress = \"h:4000\"\n[[group]]\nname = \"a\"\n";

fn mistakes(text: &str) -> String {
    let found = Config::parse(text).unwrap_err();
    found.iter().map(|it| format!("{it}\n")).collect()
}

#[test]
fn missing_settings_have_defaults() {
    let config = Config::parse(LEAST).unwrap();
    assert_eq!((config.listen, config.daemon.admin_listen), (LISTEN, ADMIN_LISTEN));
    assert_eq!(config.site.as_str(), SITE);
    assert_eq!(config.groups.len(), 1);
    let group = &config.groups[0];
    assert_eq!(group.entry.name().as_str(), "a");
    assert_eq!(group.entry.group(&[7; 32]), GroupId::of(&[7; 32], "a"));
    assert!(group.connectivity.is_none() && group.allow.is_empty());
    assert!(config.trees.is_empty() && config.replicas.is_empty());
    assert!(config.collections.is_empty() && config.feed_listen.is_none());
    assert_eq!(config.daemon.base_url, None);
}

#[test]
fn all_settings_are_read() {
    let key = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
    let text = format!(
        "data = \"d\"\naddress = \"h:4000\"\nsite = \"x\"\nlisten = \"127.0.0.1:1\"\n\
         admin_listen = \"127.0.0.1:2\"\nfeed_listen = \"127.0.0.1:3\"\n\
         base_url = \"https://h/feeds\"\n\
         link_rate = \"1 MB\"\nsite_rate = \"2 MB\"\n\
         [[group]]\nname = \"a\"\nconnectivity = 3\nallow = [\"10.0.0.0/8\"]\n\
         deny = [\"10.1.0.0/16\"]\ndeputies = [\"00000000000000ab\"]\n\
         [[group]]\njoin = \"harvest-group-1,b,{key},h:1,{key}\"\n\
         [[tree]]\nname = \"t\"\ndirectory = \"s\"\nwatch = \"10 s\"\ngroups = [\"b\"]\n\
         skip_problems = true\nmode = \"0750\"\n\
         [[tree]]\nname = \"t\"\nwriter = \"00000000000000ab\"\ndirectory = \"r\"\nmode = \"755\"\n\
         group = \"papers\"\n\
         [[collection]]\nname = \"c\"\nfeed = \"http://h:8501\"\ntoken = \"x\"\ngroups = [\"a\"]\n\
         allow_private = false\n\
         [[collection]]\nname = \"c\"\nwriter = \"00000000000000ac\"\ndirectory = \"q\"\n"
    );
    let config = Config::parse(&text).unwrap();
    assert_eq!((config.link_rate, config.site_rate), (Some(1_000_000), Some(2_000_000)));
    let [a, b] = config.groups.as_slice() else { panic!("{config:?}") };
    assert_eq!((a.allow.len(), a.deny.len(), a.deputies.len()), (1, 1, 1));
    assert_eq!(a.connectivity, Some(Connectivity::Three));
    assert!(matches!(&b.entry, GroupEntry::Join(it) if it.name.as_str() == "b"));
    let tree = &config.trees[0];
    assert!(tree.skip_problems && tree.watch == Some(Duration::from_secs(10)));
    assert_eq!(tree.groups.iter().map(Name::as_str).collect::<Vec<_>>(), ["b"]);
    let writers: Vec<MemberId> = config.replicas.iter().map(|it| it.writer).collect();
    assert_eq!(writers, [MemberId(0xab), MemberId(0xac)]);
    assert_eq!(tree.access, AccessConfig { mode: 0o750, group: None });
    let opened = AccessConfig { mode: 0o755, group: Some("papers".to_owned()) };
    assert_eq!(config.replicas[0].access, opened);
    assert_eq!(config.replicas[1].access, AccessConfig::default());
    assert_eq!(config.feed_listen, Some("127.0.0.1:3".parse().unwrap()));
    assert_eq!(config.daemon.base_url.as_ref().unwrap().as_str(), "https://h/feeds/");
    let [collection] = config.collections.as_slice() else { panic!("{config:?}") };
    assert_eq!((collection.name.as_str(), collection.feed.as_str()), ("c", "http://h:8501/"));
    let token = collection.token.as_ref().map(daemon::Token::secret);
    assert_eq!((token, collection.allow_private), (Some("x"), false));
    assert_eq!(collection.groups.iter().map(Name::as_str).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn every_mistake_is_named_with_its_line() {
    let found = mistakes(
        "listen = \"127.0.0.1:5000\"\nbase_url = \"http://h/\"\nlink_rate = \"1\"\nsite = \"Ä\"\n\
         [[group]]\nname = \"a\"\njoin = \"x\"\nallow = [\"?\"]\ndeputies = [\"?\"]\n\
         [[group]]\nname = \"a\"\n\
         [[tree]]\nname = \"t\"\ngroups = [\"z\"]\nwatch = \"1 ms\"\n\
         [[tree]]\nname = \"t\"\ndirectory = \"r\"\n\
         [[tree]]\nname = \"t\"\nwriter = \"me\"\ndirectory = \"r\"\nwatsch = true\n\
         [[tree]]\nname = \"u\"\ndirectory = \"u\"\nmode = \"770\"\ngroup = \"\"\n\
         [[collection]]\nname = \"x\"\nwriter = \"00000000000000ab\"\ndirectory = \"x\"\nmode = \"700\"\n\
         [[collection]]\nname = \"u\"\nfeed = \"http://h/\"\ntoken = \"a b\"\n\
         [[collection]]\nname = \"v\"\n\
         [[collection]]\nname = \"w\"\nfeed = \"ftp://h/\"\ngroups = [\"y\"]\n",
    );
    for part in [
        "\"data\"",
        "\"address\"",
        "2:12: no feeds are served to others",
        "3:",
        "4:",
        "two listeners have one port",
        "\"name\" is \"u\", as in [tree",
        "the token is not one word",
        "\"feed\" is missing",
        "is not of a web server",
        "\"y\" is no group here",
        "one of `name` and `join`",
        "this is no invitation",
        "`?` is neither an id",
        "\"?\" is no id",
        "there are two groups called a",
        "\"z\" is no group here",
        "\"watch\"",
        "\"me\" is no id",
        "watsch",
        "\"mode\" is \"770\"",
        "\"group\" is empty",
        "unknown key \"mode\"",
    ] {
        assert!(found.contains(part), "{part} is not in\n{found}");
    }
    assert!(mistakes("data = \"d\"\naddress = \"h:1\"").contains("there is no group"));
}

#[test]
fn a_group_after_a_wrong_one_is_reported_by_its_own_lines() {
    let groups = "[[group]]\nname = \"Ä\"\n[[group]]\nname = \"b\"\ncarry = [\"z\"]\n";
    let found = mistakes(&format!("data = \"d\"\naddress = \"h:1\"\n{groups}"));
    assert!(found.contains("7:9: no other [[group]] is called z"), "{found}");
}
