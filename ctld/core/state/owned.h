// Pointers that pass constness on: from a const Job one gets only a const Active. A std::unique_ptr
// or a plain pointer would allow changes. State is read through a const reference (context.h), and
// with these pointers the compiler protects it down to the last member.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace gantry::core {

template <class T>
class Owned {  // owns, as std::unique_ptr<T> does
 public:
  Owned() = default;
  Owned(std::unique_ptr<T> p) : p_(std::move(p)) {}  // NOLINT: from make_unique, as unique_ptr
  [[nodiscard]] T* operator->() { return p_.get(); }
  [[nodiscard]] const T* operator->() const { return p_.get(); }
  [[nodiscard]] T& operator*() { return *p_; }
  [[nodiscard]] const T& operator*() const { return *p_; }
  [[nodiscard]] explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const Owned& a, std::nullptr_t) { return a.p_ == nullptr; }
  void reset() { p_.reset(); }

 private:
  std::unique_ptr<T> p_;
};

template <class T>
class Linked {  // points to something that another part of State owns
 public:
  Linked() = default;
  Linked(T* p) : p_(p) {}  // NOLINT: from an address, as a plain pointer
  // Copying is forbidden: a copy of a const Linked would not be const.
  Linked(const Linked&) = delete;
  Linked& operator=(const Linked&) = delete;
  Linked(Linked&&) = default;
  Linked& operator=(Linked&&) = default;
  ~Linked() = default;
  [[nodiscard]] T* operator->() { return p_; }
  [[nodiscard]] const T* operator->() const { return p_; }
  [[nodiscard]] T& operator*() { return *p_; }
  [[nodiscard]] const T& operator*() const { return *p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace gantry::core
