// A queue of things that a thread has to do for users. It keeps the order of arrival, and has a
// limit for all users and one for each, so that no user can fill the queue for the others. It is
// not synchronised.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace gantry::ctld {

// Item must have a member `uid`, whose value() is the user's id.
template <class Item>
class UserQueue {
 public:
  UserQueue(std::size_t most, std::size_t most_of_user)
      : most_(most), most_of_user_(most_of_user) {}

  [[nodiscard]] bool empty() const { return waiting_.empty(); }

  // Returns false if there is no room; the item is then dropped.
  [[nodiscard]] bool push(Item item) {
    if (waiting_.size() >= most_) return false;
    std::size_t& of_user = count_[item.uid.value()];
    if (of_user >= most_of_user_) return false;
    ++of_user;
    waiting_.push_back(std::move(item));
    return true;
  }

  // Takes the first item for which `may_go` is true; nullopt if there is none.
  template <class Predicate>
  std::optional<Item> take(const Predicate& may_go) {
    const auto it = std::find_if(waiting_.begin(), waiting_.end(), may_go);
    if (it == waiting_.end()) return std::nullopt;
    std::optional<Item> item(std::move(*it));
    waiting_.erase(it);
    const auto left = count_.find(item->uid.value());
    if (--left->second == 0) count_.erase(left);
    return item;
  }

 private:
  std::size_t most_, most_of_user_;
  std::deque<Item> waiting_;
  std::map<std::uint32_t, std::size_t> count_;  // items by user id; never 0
};

}  // namespace gantry::ctld
