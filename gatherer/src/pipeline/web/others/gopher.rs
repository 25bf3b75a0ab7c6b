//! Gopher: menus and objects. Its servers tell nothing of an object but its content.

use net::fetch::{Bounds, Fault, FetchError};
use net::gopher::{self, Kind, Menu};
use url::Url;

use super::{Found, Item, List, last_name, object};

/// Asks for a menu or an object.
pub(super) async fn fetch(url: &Url, bounds: &Bounds) -> Result<Found, FetchError> {
    let found = match gopher::fetch(url, bounds).await {
        Ok(found) => found,
        Err(FetchError { fault: fault @ Fault::Refused { .. }, .. }) => {
            return Ok(Found::Absent { is_certain: false, why: fault.to_string() });
        }
        Err(error) => return Err(error),
    };
    if found.kind == Kind::Menu {
        let menu = Menu::parse(&found.bytes);
        // A search is asked by people.
        let items = menu.items.iter().filter(|it| it.kind != Kind::Search);
        let items = items.filter_map(|it| it.url()).map(|url| Item { url, steps: 1, sign: None });
        let mut list = List { items: items.collect(), ..List::default() };
        if 0 < menu.left_out || found.truncated {
            let longer = if found.truncated { ", and it is longer than what is read" } else { "" };
            list.flaw = Some(format!("{} lines of the menu are no items{longer}", menu.left_out));
        }
        return Ok(Found::List(list));
    }
    let name = last_name(url);
    let is_page = found.kind == Kind::Html && !name.contains(".htm");
    let name = if is_page { name + ".html" } else { name };
    Ok(object(url, name, (found.bytes, found.truncated), None))
}
