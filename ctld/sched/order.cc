#include "ctld/sched/order.h"

#include <algorithm>

namespace gantry::sched {

// ---- FairWalk

bool FairWalk::Key::operator<(const Key& b) const {
  const Key& a = *this;
  if (a.rank != b.rank) return a.rank > b.rank;
  if (a.among != b.among) return a.among > b.among;
  if (a.account != b.account) return a.account;
  return a.account ? a.node < b.node : before(a.first, b.first);
}

std::uint32_t FairWalk::node_of(std::uint32_t share) {
  const auto at = std::lower_bound(by_share_.begin(), by_share_.end(), share,
                                   [](const auto& e, std::uint32_t s) { return e.first < s; });
  if (at != by_share_.end() && at->first == share) return at->second;
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  by_share_.insert(at, {share, index});
  nodes_.emplace_back();
  nodes_[index].share = share;
  nodes_[index].key.node = index;
  if (tree_ == nullptr || share == kNoShare || !tree_->knows(ShareId{share})) return index;
  nodes_[index].key.among = tree_->among_siblings(ShareId{share}, now_);
  if (const auto parent = tree_->parent(ShareId{share})) {
    const std::uint32_t above = node_of(parent->value());
    nodes_[above].key.account = true;
    nodes_[index].parent = above;
  }
  return index;
}

void FairWalk::enter(std::uint32_t n) {
  Node& node = nodes_[n];
  nodes_[node.parent].children.insert(node.key);
  node.entered = true;
}

void FairWalk::leave(std::uint32_t n) {
  Node& node = nodes_[n];
  if (std::exchange(node.entered, false)) nodes_[node.parent].children.erase(node.key);
}

// An account has the best rank of what is below it.
void FairWalk::update_accounts(std::uint32_t n) {
  for (n = nodes_[n].parent; n != kTop; n = nodes_[n].parent) {
    Node& account = nodes_[n];
    const bool some = !account.children.empty();
    if (account.entered == some && (!some || account.key.rank == account.children.begin()->rank))
      return;
    leave(n);
    if (!some) continue;
    account.key.rank = account.children.begin()->rank;
    enter(n);
  }
}

void FairWalk::offer(std::uint32_t share, const Waiting& first) {
  const std::uint32_t n = node_of(share);
  leave(n);
  nodes_[n].key.rank = first.rank;
  nodes_[n].key.first = first;
  enter(n);
  update_accounts(n);
}

void FairWalk::withdraw(std::uint32_t share) {
  const std::uint32_t n = node_of(share);
  leave(n);
  update_accounts(n);
}

void FairWalk::charged(std::uint32_t share) {
  if (tree_ == nullptr || share == kNoShare || !tree_->knows(ShareId{share})) return;
  for (std::uint32_t n = node_of(share); n != kTop; n = nodes_[n].parent) {
    const bool entered = nodes_[n].entered;
    leave(n);
    nodes_[n].key.among = tree_->among_siblings(ShareId{nodes_[n].share}, now_);
    if (entered) enter(n);
  }
}

double FairWalk::level(const Key& key) const {
  return tree_ == nullptr ? 0 : tree_->level(ShareId{nodes_[key.node].share}, now_);
}

std::uint32_t FairWalk::best() const {
  return nodes_[best_below({kTop})].share;
}

// The children of equal accounts are looked at together.
std::uint32_t FairWalk::best_below(const std::vector<std::uint32_t>& parents) const {
  std::vector<const std::set<Key>*> first;  // whose first child is the best
  for (const std::uint32_t p : parents) {
    const auto& children = nodes_[p].children;
    if (!first.empty()) {
      const Key &a = *children.begin(), &b = *first[0]->begin();
      const auto better = std::pair{a.rank, level(a)} <=> std::pair{b.rank, level(b)};
      if (better < 0) continue;
      if (better > 0) first.clear();
    }
    first.push_back(&children);
  }
  std::vector<std::uint32_t> accounts;
  const Key* user = nullptr;
  for (const auto* children : first) {
    for (const Key& key : *children) {
      if (!key.ties(*children->begin())) break;
      if (key.account) {
        accounts.push_back(key.node);
        continue;
      }
      if (user == nullptr || before(key.first, user->first)) user = &key;
      break;  // users that tie stand in the order of their jobs
    }
  }
  if (accounts.empty()) return user->node;
  return user == nullptr ? best_below(accounts) : best_by_ranking();
}

// A user beside an account that it equals: its rank depends on users without waiting jobs as well.
std::uint32_t FairWalk::best_by_ranking() const {
  const Key* best = nullptr;
  std::uint32_t rank = 0;
  for (const FairRank& r : tree_->ranking(tree_->root_of(ShareId{nodes_[1].share}), now_)) {
    const auto at = std::lower_bound(by_share_.begin(), by_share_.end(), r.leaf.value(),
                                     [](const auto& e, std::uint32_t s) { return e.first < s; });
    if (at == by_share_.end() || at->first != r.leaf.value()) continue;
    const Node& node = nodes_[at->second];
    if (!node.entered) continue;
    const auto better = best == nullptr
                            ? std::strong_ordering::greater
                            : std::pair{node.key.rank, r.rank} <=> std::pair{best->rank, rank};
    if (better < 0 || (better == 0 && !before(node.key.first, best->first))) continue;
    best = &node.key;
    rank = r.rank;
  }
  return best->node;
}

// ---- Order

namespace {

bool later_turn(const Turn& a, const Turn& b) {
  return before(b.first, a.first);
}

}  // namespace

bool Order::User::touched_first() const {
  return !touched.empty() &&
         (untouched == lines->end() || before(touched.front().first, untouched->first));
}

const Waiting& Order::User::first() const {
  return touched_first() ? touched.front().first : untouched->first;
}

bool Order::later(const Key& a, const Key& b) {
  const auto sa = a.standing(), sb = b.standing();
  return sa != sb ? sa > sb : before(b.first, a.first);
}

Order::Order(const Queue& queue, const ShareTree* shares, const QuotaTree* quota, Instant now,
             Claims claims)
    : queue_(queue), shares_(shares), quota_(quota), now_(now), claims_(std::move(claims)) {
  tenants_.reserve(queue.busy().size());
  heap_.reserve(queue.busy().size());
  for (const std::uint32_t partition : queue.busy()) add_tenant(partition);
}

void Order::add_tenant(std::uint32_t partition) {
  const PartitionQueue& queue = queue_.partition(partition);
  // One user alone has nobody to be compared with.
  const ShareTree* tree = queue.users.size() > 1 ? shares_ : nullptr;
  tenants_.push_back({partition, queue.priority, {}, FairWalk(tree, now_)});
  Tenant& tenant = tenants_.back();
  tenant.users.reserve(queue.users.size());
  for (const auto& [share, lines] : queue.users) {
    tenant.users.push_back({share, &lines, lines.begin(), {}});
    tenant.walk.offer(share, lines.begin()->first);
  }
  enter(static_cast<std::uint32_t>(tenants_.size() - 1));
}

Order::User& Order::user_of(Tenant& tenant, std::uint32_t share) {
  return *std::lower_bound(tenant.users.begin(), tenant.users.end(), share,
                           [](const User& u, std::uint32_t s) { return u.share < s; });
}

Order::User& Order::best_user(Tenant& tenant) {
  return tenant.users.size() == 1 ? tenant.users[0] : user_of(tenant, tenant.walk.best());
}

Turn Order::peek(Tenant& tenant, User& user) {
  if (user.touched_first()) return user.touched.front();
  Turn turn;
  turn.line = user.untouched->first.line;
  turn.class_index = queue_.line(turn.line).class_index;
  turn.partition = tenant.partition;
  turn.tenant = static_cast<std::uint32_t>(&tenant - tenants_.data());
  turn.first = user.untouched->first;
  return turn;
}

Order::Key Order::key_of(std::uint32_t t) {
  Tenant& tenant = tenants_[t];
  Key key;
  const Turn turn = peek(tenant, best_user(tenant));
  key.priority = tenant.priority;
  key.rank = turn.first.rank;
  key.first = turn.first;
  key.tenant = t;
  key.version = version_;
  if (quota_ == nullptr) return key;
  const Claim claim = claims_(turn);
  if (claim.quota_node == kNoIndex) return key;
  key.levels = claim.levels;
  quota_->share_values(claim.quota_node, claim.need, key.values);
  return key;
}

void Order::enter(std::uint32_t tenant) {
  heap_.push_back(key_of(tenant));
  std::push_heap(heap_.begin(), heap_.end(), later);
}

std::optional<std::pair<std::uint32_t, std::int32_t>> Order::front() const {
  if (heap_.empty()) return std::nullopt;
  return std::pair{heap_.front().priority, heap_.front().rank};
}

std::optional<Turn> Order::next() {
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Key key = heap_.back();
    heap_.pop_back();
    if (key.version != version_) {
      const Key now = key_of(key.tenant);
      if (!heap_.empty() && later(now, heap_.front())) {
        heap_.push_back(now);
        std::push_heap(heap_.begin(), heap_.end(), later);
        continue;
      }
    }
    Tenant& tenant = tenants_[key.tenant];
    User& user = best_user(tenant);
    Turn turn = peek(tenant, user);
    if (user.touched_first()) {
      std::pop_heap(user.touched.begin(), user.touched.end(), later_turn);
      user.touched.pop_back();
    } else {
      ++user.untouched;
    }
    return turn;
  }
  return std::nullopt;
}

void Order::again(const Turn& turn) {
  User& user = user_of(tenants_[turn.tenant], queue_.line(turn.line).share);
  user.touched.push_back(turn);
  user.touched.back().fresh = false;
  std::push_heap(user.touched.begin(), user.touched.end(), later_turn);
  done(turn);
}

void Order::done(const Turn& turn) {
  Tenant& tenant = tenants_[turn.tenant];
  User& user = user_of(tenant, queue_.line(turn.line).share);
  if (user.empty())
    tenant.walk.withdraw(user.share);
  else
    tenant.walk.offer(user.share, user.first());
  if (!tenant.walk.empty()) enter(turn.tenant);
}

void Order::started(const Turn& turn) {
  tenants_[turn.tenant].walk.charged(queue_.line(turn.line).share);
  if (quota_ != nullptr) ++version_;
}

std::vector<Turn> Order::drain() {
  std::vector<Turn> rest;
  for (Tenant& tenant : tenants_)
    for (User& user : tenant.users)
      rest.insert(rest.end(), user.touched.begin(), user.touched.end());
  heap_.clear();
  return rest;
}

}  // namespace gantry::sched
