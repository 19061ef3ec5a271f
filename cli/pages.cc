#include "cli/pages.h"

#include <algorithm>
#include <numeric>

#include "common/proto/priority_order.h"
#include "common/text/hostlist.h"
#include "config/tenancy/kinds.h"

namespace gantry::cli {
namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  if (to.empty())
    to = std::move(from);
  else
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// Indices of the rows, sorted by place. Rows with equal places keep their order.
std::vector<std::size_t> in_places(const std::vector<std::uint32_t>& places) {
  std::vector<std::size_t> order(places.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
  return order;
}

template <class Row>
void put_in_order(std::vector<Row>& rows, const std::vector<std::uint32_t>& places) {
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const std::size_t i : in_places(places)) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

// Appends the places and lists of `page` to `whole`; `lists` belongs to `whole`, `more` to `page`.
template <class Page, class Lists>
void join(Page& whole, Page&& page, Lists& lists, Lists&& more) {
  const auto before = static_cast<std::uint32_t>(lists.size());
  for (std::uint32_t& list : page.list_of) list += before;
  append(lists, std::move(more));
  append(whole.list_of, std::move(page.list_of));
  append(whole.places, std::move(page.places));
  whole.next = page.next;
}

// True if each row has a place, and a list that exists.
template <class Page>
bool is_sound(const Page& page, std::size_t rows, std::size_t lists) {
  return page.places.size() == rows && page.list_of.size() == rows &&
         std::all_of(page.list_of.begin(), page.list_of.end(),
                     [lists](std::uint32_t list) { return list < lists; });
}

}  // namespace

// ---- nodes

bool Pages<proto::ListNodes>::add(proto::ListNodesReply& whole, proto::ListNodesReply&& page,
                                  proto::ListNodes& m) {
  if (!page.page || !is_sound(*page.page, page.nodes.size(), page.page->partitions.size())) {
    whole = std::move(page);
    whole.page.reset();
    return false;
  }
  m.from = page.page->next;
  whole.now = page.now;
  append(whole.nodes, std::move(page.nodes));
  if (!whole.page) whole.page.emplace();
  join(*whole.page, std::move(*page.page), whole.page->partitions,
       std::move(page.page->partitions));
  return m.from.has_value();
}

void Pages<proto::ListNodes>::finish(proto::ListNodesReply& whole) {
  if (!whole.page) return;
  for (std::size_t i = 0; i < whole.nodes.size(); ++i)
    whole.nodes[i].partitions = whole.page->partitions[whole.page->list_of[i]];
  put_in_order(whole.nodes, whole.page->places);
  whole.page.reset();
}

// ---- partitions

bool Pages<proto::ListPartitions>::add(proto::ListPartitionsReply& whole,
                                       proto::ListPartitionsReply&& page,
                                       proto::ListPartitions& m) {
  if (!page.page || !is_sound(*page.page, page.partitions.size(), page.page->hosts.size())) {
    whole = std::move(page);
    whole.page.reset();
    return false;
  }
  m.from = page.page->next;
  append(whole.partitions, std::move(page.partitions));
  append(whole.licenses, std::move(page.licenses));
  if (!whole.page) whole.page.emplace();
  join(*whole.page, std::move(*page.page), whole.page->hosts, std::move(page.page->hosts));
  return m.from.has_value();
}

void Pages<proto::ListPartitions>::finish(proto::ListPartitionsReply& whole) {
  if (!whole.page) return;
  std::vector<std::vector<std::string>> lists;
  for (const std::string& hosts : whole.page->hosts)
    lists.push_back(expand_hostlist(hosts).value_or(std::vector<std::string>{}));
  for (std::size_t i = 0; i < whole.partitions.size(); ++i)
    whole.partitions[i].nodes = lists[whole.page->list_of[i]];
  put_in_order(whole.partitions, whole.page->places);
  whole.page.reset();
}

// ---- options

bool Pages<proto::ShowConfig>::add(proto::ShowConfigReply& whole, proto::ShowConfigReply&& page,
                                   proto::ShowConfig& m) {
  const bool more = page.page && page.page->more && !page.values.empty();
  if (more) m.after = page.values.rbegin()->first;
  whole.values.merge(page.values);
  return more;
}

void Pages<proto::ShowConfig>::finish(proto::ShowConfigReply& whole) {
  whole.page.reset();
}

// ---- fair share

bool Pages<proto::ShareTree>::add(proto::ShareTreeReply& whole, proto::ShareTreeReply&& page,
                                  proto::ShareTree& m) {
  if (!page.page) {
    whole = std::move(page);
    return false;
  }
  m.from = page.page->next;
  whole.half_life = page.half_life;
  whole.now = page.now;
  append(whole.rows, std::move(page.rows));
  if (!whole.page) whole.page.emplace();
  append(whole.page->places, std::move(page.page->places));
  return m.from.has_value();
}

// Sorts the tenants by their places; the rows below each tenant stay with it.
void Pages<proto::ShareTree>::finish(proto::ShareTreeReply& whole) {
  if (!whole.page) return;
  std::vector<std::vector<proto::ShareRow>> tenants;
  for (proto::ShareRow& row : whole.rows) {
    if (row.project.empty() || tenants.empty()) tenants.emplace_back();
    tenants.back().push_back(std::move(row));
  }
  whole.page->places.resize(tenants.size());
  put_in_order(tenants, whole.page->places);
  whole.rows.clear();
  for (std::vector<proto::ShareRow>& rows : tenants) append(whole.rows, std::move(rows));
  whole.page.reset();
}

// ---- the order of waiting jobs

bool Pages<proto::PriorityTuples>::add(proto::PriorityTuplesReply& whole,
                                       proto::PriorityTuplesReply&& page,
                                       proto::PriorityTuples& m) {
  const bool more = page.page ? page.page->next.has_value() : page.more && !page.rows.empty();
  if (page.page)
    m.after_job = page.page->next;
  else if (more)  // a controller without pages sorts the rows itself
    m.after = page.rows.back().place;
  whole.page = page.page;
  whole.now = page.now;
  whole.weights = std::move(page.weights);
  append(whole.rows, std::move(page.rows));
  return more;
}

void Pages<proto::PriorityTuples>::finish(proto::PriorityTuplesReply& whole) {
  if (!whole.page) return;
  std::sort(whole.rows.begin(), whole.rows.end(), proto::comes_first);
  std::uint32_t place = 0;
  for (proto::PriorityRow& row : whole.rows) row.place = ++place;
  whole.page.reset();
}

// ---- history

bool Pages<proto::TenancyHistory>::add(proto::TenancyHistoryReply& whole,
                                       proto::TenancyHistoryReply&& page,
                                       proto::TenancyHistory& m) {
  const std::optional<proto::HistoryPlace> next = page.page ? page.page->next : std::nullopt;
  const std::size_t before = whole.revisions.size();
  for (proto::TenancyRevision& revision : page.revisions) {
    if (!whole.revisions.empty() && whole.revisions.back().revision == revision.revision)
      append(whole.revisions.back().changes, std::move(revision.changes));
    else
      whole.revisions.push_back(std::move(revision));
  }
  whole.page = page.page;
  if (!next) return false;
  m.from = next;
  if (m.limit == 0) return true;
  // The last revision of a page may continue in the next page; it is then not counted again.
  const bool goes_on =
      !whole.revisions.empty() && whole.revisions.back().revision == next->revision;
  const auto fresh = static_cast<std::uint32_t>(whole.revisions.size() - before);
  m.limit = m.limit - std::min(m.limit, fresh) + (goes_on ? 1 : 0);
  return m.limit > 0;
}

// Sorts the changes of each revision by the order of its documents.
void Pages<proto::TenancyHistory>::finish(proto::TenancyHistoryReply& whole) {
  if (!whole.page) return;
  const auto place = [](const proto::DocumentChange& change) {
    const auto document = tenancy::empty_document(change.kind);
    return std::pair(document ? document->index() : std::variant_npos, std::cref(change.name));
  };
  for (proto::TenancyRevision& revision : whole.revisions)
    std::stable_sort(
        revision.changes.begin(), revision.changes.end(), [&](const auto& a, const auto& b) {
          const auto x = place(a), y = place(b);
          return x.first != y.first ? x.first < y.first : x.second.get() < y.second.get();
        });
  whole.page.reset();
}

bool Pages<proto::ListAccess>::add(proto::AccessReply& whole, proto::AccessReply&& page,
                                   proto::ListAccess& m) {
  append(whole.rows, std::move(page.rows));
  if (!page.next || *page.next <= m.after) return false;
  m.after = *page.next;
  return true;
}

}  // namespace gantry::cli
