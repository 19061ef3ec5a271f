// A record of many members is copied, moved and destroyed by code that the compiler would make
// again in each object that does one of these, which was a fifth of the code of all objects. Such a
// record declares them, and one .cc file of its folder defines them:
//
//   struct JobSpec {
//     GANTRY_SPECIAL_MEMBERS(JobSpec)
//     ...
//
// It is no aggregate then: its members are set by their names, one by one.
#pragma once

#define GANTRY_SPECIAL_MEMBERS(Type) \
  Type();                            \
  Type(const Type&);                 \
  Type(Type&&) noexcept;             \
  Type& operator=(const Type&);      \
  Type& operator=(Type&&) noexcept;  \
  ~Type();

#define GANTRY_DEFINE_SPECIAL_MEMBERS(Type)         \
  Type::Type() = default;                           \
  Type::Type(const Type&) = default;                \
  Type::Type(Type&&) noexcept = default;            \
  Type& Type::operator=(const Type&) = default;     \
  Type& Type::operator=(Type&&) noexcept = default; \
  Type::~Type() = default;
