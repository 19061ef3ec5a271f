// The order in which a plan looks at jobs. In full:
//
//   partition priority > rank of the job's class (raised while it waits) > not borrowing
//   before borrowing, the top level of the cohorts first > share value of the cohorts and of the
//   tenant
//   with the job (quota.h) > Fair Tree inside the tenant (fairshare.h) > job priority > time > id
//
// A tenant is a partition. Each tenant offers one job, its first by rank, Fair Tree and the rest of
// the order; tenants stand in a heap by that job. While a plan is made usage only grows, so a
// tenant's place in the heap can only be too good: it is computed again when the tenant comes first
// (so the lazy heap is exact). Only tenants with waiting jobs are touched. Without a tenancy the
// order is priority, time, id.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "ctld/sched/queue/queue.h"
#include "ctld/sched/tenant/fairshare.h"
#include "ctld/sched/tenant/quota.h"

namespace gantry::sched {

// The users of one tenant who have waiting jobs. A walk down the fair-share tree finds the next
// user in O(depth x log users).
class FairWalk {
 public:
  // Without a tree all users are equal.
  FairWalk(const ShareTree* tree, Instant now) : tree_(tree), now_(now), nodes_(1) {}

  void offer(std::uint32_t share, const Waiting& first);  // the user's first job, new or changed
  void withdraw(std::uint32_t share);                     // the user has no job left
  void charged(std::uint32_t share);                      // the user's usage has changed
  [[nodiscard]] bool empty() const { return nodes_[0].children.empty(); }
  [[nodiscard]] std::uint32_t best() const;  // the user whose job comes next

 private:
  static constexpr std::uint32_t kTop = 0;
  struct Key {
    std::int32_t rank = 0;
    double among = 0;  // ShareTree::among_siblings()
    bool account = false;
    Waiting first;  // the user's first job, if it is a user
    std::uint32_t node = 0;
    bool operator<(const Key& b) const;
    [[nodiscard]] bool ties(const Key& o) const { return rank == o.rank && among == o.among; }
  };
  struct Node {
    std::uint32_t share = kNoShare;
    std::uint32_t parent = kTop;
    Key key;
    bool entered = false;                 // true if it is among the parent's children
    std::vector<std::uint32_t> children;  // children of an account, in the order of their keys
  };
  std::uint32_t node_of(std::uint32_t share);
  void enter(std::uint32_t node);  // enters the node with its present key
  void leave(std::uint32_t node);
  void update_accounts(std::uint32_t node);
  [[nodiscard]] std::vector<std::uint32_t>::iterator place_of(std::uint32_t node);
  [[nodiscard]] const Key& first_of(std::uint32_t account) const {
    return nodes_[nodes_[account].children.front()].key;
  }
  [[nodiscard]] double level(const Key& key) const;
  [[nodiscard]] std::uint32_t best_below(const std::vector<std::uint32_t>& parents) const;
  [[nodiscard]] std::uint32_t best_by_ranking() const;

  const ShareTree* tree_;
  Instant now_;
  std::vector<Node> nodes_;                                        // [0] is the root
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_share_;  // (share, node); sorted
};

// Why the first job of a line must wait.
struct Blocked {
  enum class By : std::uint8_t { room, quota, tenant_jobs, reservation };
  By by = By::room;
  QuotaFit fit;               // if blocked by quota
  std::uint32_t component{};  // of a heterogeneous job: the component that has no place
};

// One line in a plan, and how many of its jobs have been handled.
struct LineTurn {
  std::uint32_t line = 0;
  std::uint32_t class_index = 0;
  std::uint32_t partition = 0;
  std::uint32_t tenant = 0;                  // its tenant's number in Order
  OrderedSlots::Cursor at;                   // the job whose turn it is
  Waiting first;                             // that job
  std::uint32_t started = 0;                 // elements of that job (an array) that were handled
  std::optional<OrderedSlots::Cursor> head;  // the first job that must wait; set = no job fits now
  Waiting head_job;                          // the job at `head`
  std::uint32_t ahead = 0;                   // elements of that job that got a reservation
  bool fresh = true;                         // never looked at in this plan
  bool searched = false;                     // true once find_place() was called
  bool reserved = false;                     // its first job has a reservation
  std::uint32_t passed = 0;                  // lines of its partition that were skipped before it
  std::uint32_t blocked = 0;  // why its first job must wait: see Draft::block(), from 1 on
};

// The standing of a line's class with regard to its quota, as the order needs it.
struct QuotaStanding {
  std::uint32_t quota_node = kNoIndex;  // kNoIndex: no quota
  QuotaNeed need;                       // the least that a job of it takes
  std::uint32_t levels = 0;             // QuotaFit::levels
};

// The key of a partition's best job in the order.
struct OrderKey {
  static constexpr std::size_t kLevels = 6;  // levels of cohorts and tenant that are compared
  std::uint32_t priority = 0;
  std::int32_t rank = 0;
  std::uint32_t levels = 0;
  std::array<std::int64_t, kLevels> values{};
  Waiting first;
  std::uint32_t tenant = 0;  // the tenant's number in Order
  std::uint64_t version = 0;
};

// A line of a partition, noted in an order that is valid while nothing starts.
struct Step {
  Waiting first;
  std::uint32_t share = kNoShare;
  std::uint32_t request = 0;  // of RequestKeys
  QuotaNeed need;
};

// Keeps the order of each partition's lines, and the key of its first line, from plan to plan,
// until something changes on which they depend.
class KnownKeys {
 public:
  void forget() { keys_.clear(); }
  void forget(std::uint32_t partition) {
    if (partition < keys_.size()) keys_[partition].known = false;
  }

 private:
  friend class Order;
  struct Known {
    bool known = false;
    Instant at{};                 // time of the usage for the fair share
    std::optional<ShareId> root;  // the root of its users
    std::uint64_t shares = 0;     // ShareTree::version()
    OrderKey key;
    std::uint32_t quota_node = kNoIndex;
    std::uint64_t quota = 0;  // QuotaTree::stamp()
    std::vector<Step> steps;  // all lines, or none
  };
  std::vector<Known> keys_;  // by partition
};

class Order {
 public:
  using Standings =
      std::function<QuotaStanding(std::uint32_t partition, std::uint32_t class_index)>;
  // Tells which partitions and lines a plan skips because none of their jobs can start.
  struct Passing {
    // True if all remaining lines of the partition may be skipped. The answer may become true only
    // when failures() or the usage has grown.
    std::function<bool(std::uint32_t partition)> all;
    std::function<std::uint64_t()> failures;
    std::function<bool(std::uint32_t partition)>
        lines;  // true if its lines may be skipped one by one
    std::function<bool(std::uint32_t partition, const Step&)> line;
  };
  // The fair share uses the usage at the last multiple of this time, so that a known order stays
  // valid for that long.
  static constexpr Duration kShareStep = seconds(5);

  // `shares` is null without fair share, `quota` without quota. `busy`: the partitions to go
  // through. `passing` is nullopt if nothing is skipped.
  Order(const Queue& queue, const ShareTree* shares, const QuotaTree* quota, Instant now,
        Standings standings, KnownKeys& keys, const std::vector<std::uint32_t>& busy,
        std::optional<Passing> passing);

  // Partition priority and rank of the job that comes next; nullopt: there is none.
  [[nodiscard]] std::optional<std::pair<std::uint32_t, std::int32_t>> front();
  std::optional<LineTurn> next();
  // After each next(), call exactly one of these: again() if the line has more jobs, else done().
  void again(const LineTurn& turn);
  void done(const LineTurn& turn);
  // The turn's line has started a job, so the usage of its user and its tenant has grown.
  void started(const LineTurn& turn);
  void usage_grew() { ++version_; }  // the use of a tenant's quota has grown
  // A note of the line's place for the next plan, made at the line's first turn; nullopt if the
  // next plan needs none, or if a Step cannot describe the place.
  [[nodiscard]] bool wants_note(const LineTurn& turn) const { return tenants_[turn.tenant].noting; }
  void note(const LineTurn& turn, std::optional<Step> step);

  // Lines that were looked at and have more jobs, except lines of partitions that were skipped.
  // Call it at the end of a plan.
  std::vector<LineTurn> drain();

 private:
  struct User {
    std::uint32_t share = kNoShare;
    const Lines* lines = nullptr;
    Lines::const_iterator untouched;
    std::vector<LineTurn> touched;  // a heap
    [[nodiscard]] bool touched_first() const;
    [[nodiscard]] bool empty() const { return touched.empty() && untouched == lines->end(); }
    [[nodiscard]] const Waiting& first() const;
  };
  struct Tenant {
    Tenant(std::uint32_t id, std::uint32_t its_priority, Instant now)
        : partition(id), priority(its_priority), walk(nullptr, now) {}
    std::uint32_t partition = 0;
    std::uint32_t priority = 0;
    FairWalk walk;
    std::vector<User> users;  // by share
    bool built = false;       // walk and users are built
    bool skipped = false;     // all of its lines, or all remaining ones, are skipped
    bool stepping = false;    // so far all its lines were skipped
    bool noting = false;      // its lines are noted for the next plan
    std::uint32_t step = 0;   // number of skipped lines
    std::uint64_t failures = 0,
                  version = 0;  // values when it was last checked whether to skip all of it
  };
  static bool later(const OrderKey& a, const OrderKey& b);
  void build(Tenant& tenant);
  bool settle();
  bool pass_all(Tenant& tenant);
  bool pass_line(std::uint32_t tenant);
  [[nodiscard]] KnownKeys::Known& known_of(const Tenant& tenant) {
    return keys_.keys_[tenant.partition];
  }
  [[nodiscard]] User& best_user(Tenant& tenant);
  User& user_of(Tenant& tenant, std::uint32_t share);
  LineTurn peek(Tenant& tenant, User& user);
  OrderKey key_of(std::uint32_t tenant);
  [[nodiscard]] OrderKey first_key(std::uint32_t tenant);
  void enter(std::uint32_t tenant);
  void pop();

  const Queue& queue_;
  const ShareTree* shares_;
  const QuotaTree* quota_;
  const Instant now_;
  const Standings standings_;
  KnownKeys& keys_;
  const std::optional<Passing> passing_;
  std::vector<Tenant> tenants_;
  std::vector<OrderKey> heap_;
  std::uint64_t version_ = 0;  // changes when usage grows
};

}  // namespace gantry::sched
