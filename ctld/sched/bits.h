// A set of small numbers (nodes, CPUs) as words of 64 bits; iterates in increasing order.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace gantry::sched {

class Bits {
 public:
  void resize(std::size_t bits) { words_.resize((bits + 63) / 64, 0); }
  void reset() { std::fill(words_.begin(), words_.end(), 0); }
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void clear(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  [[nodiscard]] bool test(std::size_t i) const {
    return i / 64 < words_.size() && ((words_[i / 64] >> (i % 64)) & 1) != 0;
  }
  [[nodiscard]] std::size_t words() const { return words_.size(); }
  [[nodiscard]] std::uint64_t word(std::size_t w) const {
    return w < words_.size() ? words_[w] : 0;
  }
  std::uint64_t& word_at(std::size_t w) { return words_[w]; }
  [[nodiscard]] std::uint32_t count() const {
    std::uint32_t n = 0;
    for (const std::uint64_t w : words_) n += static_cast<std::uint32_t>(std::popcount(w));
    return n;
  }
  friend bool operator==(const Bits&, const Bits&) = default;

 private:
  std::vector<std::uint64_t> words_;
};

// Calls f(index) for each bit of `word`, the w-th of its set, until f returns true. Returns true if
// f did.
template <class F>
bool any_in_word(std::uint64_t word, std::size_t w, F&& f) {
  for (; word != 0; word &= word - 1)
    if (f(static_cast<std::uint32_t>(w * 64 + static_cast<std::size_t>(std::countr_zero(word)))))
      return true;
  return false;
}

}  // namespace gantry::sched
