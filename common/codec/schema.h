// Lists every field of a struct and of the structs inside it. The golden listing made from it shows
// a wire change in review (tests/golden/messages.txt).
//
//   Schema schema;
//   schema.add<proto::SubmitJob>();   // and what it contains
//   schema.structs()                  // name -> lines "  2 spec JobSpec"
#pragma once

#include <map>
#include <string>

#include "common/codec/codec.h"

namespace gantry::codec {

class Schema {
 public:
  template <class T>
  void add() {
    add(type_of<T>());
  }
  void add(const TypeInfo& type);

  [[nodiscard]] const std::map<std::string, std::string>& structs() const { return structs_; }
  [[nodiscard]] const std::map<std::string, std::string>& enums() const { return enums_; }

 private:
  std::string describe(const TypeInfo& type);
  std::string describe_variant(const TypeInfo& type);
  std::string describe_enum(const TypeInfo& type);

  std::map<std::string, std::string> structs_;
  std::map<std::string, std::string> enums_;
};

}  // namespace gantry::codec
