#include "ctld/sched/cycle/exchange.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace gantry::sched {
namespace {

constexpr std::size_t kNowhere = ~std::size_t{0};

// The reservations of one line that can be exchanged. Claims are not among them, because victims
// leave for one particular job.
template <class P>
struct Deal {
  std::vector<P*> reservations;
  std::map<JobId, std::uint32_t> claims;  // how many reservations each of its jobs has
};

// The first jobs of the line, an array once for each element that may start and has no claim.
template <class P>
std::vector<JobId> first_jobs(const Queue& queue, const Line& line, const Deal<P>& deal) {
  std::vector<JobId> first;
  for (auto at = line.jobs.begin(); !line.jobs.at_end(at); at = line.jobs.next(at)) {
    const Waiting& w = queue[line.jobs[at]];
    const auto claims = deal.claims.find(w.job);
    std::uint32_t left = w.startable;
    if (claims != deal.claims.end()) left -= std::min(left, claims->second);
    for (; left > 0; --left) {
      if (first.size() == deal.reservations.size()) return first;
      first.push_back(w.job);
    }
  }
  return first;
}

// Sorts the earliest first; between equal starts in the order of the jobs that have them now.
template <class P>
void sort_for(std::vector<P*>& reservations, const std::vector<JobId>& first) {
  std::map<JobId, std::size_t> places;
  for (std::size_t i = 0; i < first.size(); ++i) places.try_emplace(first[i], i);
  const auto key = [&](const Reservation& p) {
    const auto at = places.find(p.job);
    const std::size_t place = at == places.end() ? kNowhere : at->second;
    return std::tuple{p.start, place, p.job, p.shares.empty() ? 0 : p.shares[0].node};
  };
  std::sort(reservations.begin(), reservations.end(),
            [&](const Reservation* a, const Reservation* b) { return key(*a) < key(*b); });
}

// Calls f(line, its reservations, its first jobs) for each line in which the first jobs do not have
// the earliest reservations.
template <class P, class F>
void each_disorder(const Queue& queue, const std::vector<P*>& reservations, F&& f) {
  std::vector<std::pair<std::uint32_t, P*>> by_line;
  for (P* p : reservations)
    if (const auto slot = queue.find(p->job)) by_line.emplace_back(queue[*slot].line, p);
  std::stable_sort(by_line.begin(), by_line.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto at = by_line.begin(), next = at; at != by_line.end(); at = next) {
    const Line& line = queue.line(at->first);
    next = std::find_if(at, by_line.end(), [&](const auto& p) { return p.first != at->first; });
    const Waiting& head = queue[line.jobs[line.jobs.begin()]];
    if (next - at == 1 && head.job == at->second->job && head.startable > 0) continue;
    Deal<P> deal;
    for (auto of_line = at; of_line != next; ++of_line)
      if (P* p = of_line->second; p->claimed)
        ++deal.claims[p->job];
      else
        deal.reservations.push_back(p);
    const std::vector<JobId> first = first_jobs(queue, line, deal);
    sort_for(deal.reservations, first);
    const bool right =
        std::equal(first.begin(), first.end(), deal.reservations.begin(), deal.reservations.end(),
                   [](JobId job, const Reservation* p) { return job == p->job; });
    if (!right) f(at->first, deal.reservations, first);
  }
}

}  // namespace

std::set<std::uint32_t> lines_to_deal(const Queue& queue, const Reservations& reservations) {
  std::vector<const Reservation*> all;
  for (const auto& [job, of_job] : reservations)
    for (const Reservation& p : of_job) all.push_back(&p);
  std::set<std::uint32_t> lines;
  each_disorder(queue, all,
                [&](std::uint32_t line, const auto&, const auto&) { lines.insert(line); });
  return lines;
}

void deal_out(const Queue& queue, std::vector<Reservation>& reservations,
              const std::set<std::uint32_t>& lines,
              const std::function<void(Reservation&)>& given) {
  std::vector<Reservation*> all;
  for (Reservation& p : reservations) all.push_back(&p);
  std::set<const Reservation*> gone;
  each_disorder(queue, all,
                [&](std::uint32_t line, const std::vector<Reservation*>& of_line,
                    const std::vector<JobId>& first) {
                  if (!lines.contains(line)) return;
                  for (std::size_t i = 0; i < of_line.size(); ++i)
                    if (i < first.size()) {
                      of_line[i]->job = first[i];
                      given(*of_line[i]);
                    } else {
                      gone.insert(of_line[i]);
                    }
                });
  std::erase_if(reservations, [&](const Reservation& p) { return gone.contains(&p); });
}

}  // namespace gantry::sched
