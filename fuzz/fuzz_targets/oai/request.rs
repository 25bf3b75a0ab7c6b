//! Fuzzing of requests: any query to a repository is a request that is written back unchanged, or a
//! fault of the protocol. A refusal is a response that a harvester can read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oai::identifier::RepositoryId;
use oai::repository::token::LogPosition;
use oai::repository::{Facts, ask, refusal};
use oai::response::{Body, Format, read};
use oai::{Code, Datestamp, Granularity, Request, Verb};

const BASE_URL: &str = "http://a.example/oai";

fn facts() -> Facts {
    Facts {
        name: "A".to_owned(),
        id: RepositoryId::parse("a.example").expect("it is one"),
        base_url: BASE_URL.to_owned(),
        admin_emails: vec!["admin@a.example".to_owned()],
        formats: vec![Format { prefix: "oai_dc".to_owned(), ..Format::default() }],
        descriptions: Vec::new(),
        page_records: 10,
    }
}

fuzz_target!(|query: &str| {
    match Request::parse(query) {
        Ok(request) => assert_eq!(Request::parse(&request.to_query()), Ok(request)),
        Err(fault) => assert!(matches!(fault.code, Code::BadVerb | Code::BadArgument)),
    }
    let state = LogPosition { epoch: 1, serial: 100, horizon: 10 };
    match ask(&facts(), &state, query) {
        Ok((request, _)) => assert_eq!(Request::parse(query), Ok(request)),
        Err(refused) => {
            let date = Datestamp::at(0, Granularity::Second);
            let text = refusal(BASE_URL, date, &refused);
            let reading = read(text.as_bytes(), Verb::Identify).expect("our response can be read");
            assert!(!reading.repaired, "{text}");
            let Body::Faults(faults) = reading.response.body else { panic!("{text}") };
            assert_eq!(faults.len(), refused.faults.len());
        }
    }
});
