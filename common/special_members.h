// Code that copies, moves and destroys a record of many members was made again in each object, and
// was a fifth of what the objects have. A large record declares its special members instead, and
// one .cc file of its folder defines them:
//
//   struct JobSpec {
//     GANTRY_SPECIAL_MEMBERS(JobSpec)
//     ...
//
// Such a record is no aggregate: its members are set by their names, one by one.
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
