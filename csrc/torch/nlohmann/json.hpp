// What a header of PyTorch on its transforms names of a library that PyTorch is built with, and does not ship. Only
// what writes a level to a file would call it, and nothing here does.

#pragma once

#include <string>

namespace nlohmann {

struct json {
  json() = default;
  template <typename Value>
  explicit json(const Value&);
  std::string dump() const;
  static json parse(const std::string&);
  template <typename Value>
  Value get() const;
};

}  // namespace nlohmann
