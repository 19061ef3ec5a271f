#include "config/tenancy/files/load.h"

#include <dirent.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>

#include "config/tenancy/capacity.h"
#include "config/tenancy/check.h"
#include "config/tenancy/files/manifests.h"
#include "config/tenancy/write.h"

namespace gantry::tenancy {
namespace {

constexpr int kMostFolders = 16;  // depth of nested folders
constexpr std::size_t kMostFiles = 100'000;

tl::unexpected<Error> cannot_read(const std::string& path, int error) {
  return fail(error == ENOENT ? ErrorCode::not_found : ErrorCode::io_error,
              fmt::format("cannot read {}: {}", path, std::strerror(error)));
}

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             std::fclose);
  if (!file) return cannot_read(path, errno);
  std::string text;
  std::array<char, 65536> buffer;
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    text.append(buffer.data(), n);
    if (text.size() > config::kMaxDocumentsBytes) break;  // the parser refuses it
  }
  if (std::ferror(file.get()) != 0) return cannot_read(path, errno);
  return text;
}

bool has_documents(std::string_view name) {
  return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
}

Result<void> list_files(const std::string& path, int depth, bool named,
                        std::vector<std::string>& out) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return cannot_read(path, errno);
  if (!S_ISDIR(info.st_mode)) {
    if (named || has_documents(path)) out.push_back(path);
    if (out.size() > kMostFiles)
      return fail(ErrorCode::limit_exceeded, fmt::format("more than {} files", kMostFiles));
    return {};
  }
  if (depth > kMostFolders)
    return fail(ErrorCode::limit_exceeded,
                fmt::format("{}: folders are nested more than {} deep", path, kMostFolders));
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder) return cannot_read(path, errno);
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(folder.get()))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  std::sort(names.begin(), names.end());
  const std::string base = path.ends_with('/') ? path : path + "/";
  for (const std::string& name : names)
    if (auto done = list_files(base + name, depth + 1, false, out); !done) return done;
  return {};
}

struct Source {
  std::string file;
  std::string text;
};

bool is_ours(const config::Yaml& tree) {
  const config::Yaml* version = config::find(tree, "apiVersion");
  return version != nullptr && version->scalar.starts_with("gantry/");
}

class Load {
 public:
  explicit Load(const LoadOptions& options) : options_(options) {}

  Result<Loaded> run(std::span<const Source> sources, std::vector<ReadDocument> made = {}) {
    for (const Source& source : sources) TRY(read(source));
    for (ReadDocument& document : made) TRY(keep(std::move(document)));
    TRY(translate());
    TRY(resolve());
    TRY(check());
    Loaded out;
    for (const ReadDocument& r : read_) out.documents.push_back(r.document);
    sort_documents(out.documents);
    out.removals = removals_;
    for (const Note& note : notes_) out.notes.push_back(to_string(note));
    out.notes.insert(out.notes.end(), parts_.begin(), parts_.end());
    return out;
  }

 private:
  Result<void> read(const Source& source) {
    ASSIGN(trees, config::parse_yaml_documents(source.text, source.file));
    for (config::Yaml& tree : *trees) {
      trees_.push_back(std::move(tree));
      const Value root(trees_.back(), source.file, "");
      if (!root.is_map()) return root.wrong("needs keys such as `kind:`");
      const config::Yaml* version = config::find(trees_.back(), "apiVersion");
      if (version == nullptr)
        return root.wrong("`apiVersion` is missing: gantry/v1 for documents of Gantry");
      if (!is_ours(trees_.back())) {
        if (auto done = add_objects(trees_.back(), source.file); !done) return done;
        continue;
      }
      if (version->scalar != "gantry/v1")
        return Value(*version, source.file, "apiVersion")
            .wrong(fmt::format("\"{}\" is not known; use gantry/v1", version->scalar));
      ASSIGN(document, read_document(root));
      if (auto done = keep(std::move(*document)); !done) return done;
    }
    return {};
  }

  // Adds an object of Kubernetes, or a List of objects.
  Result<void> add_objects(const config::Yaml& tree, const std::string& file,
                           const std::string& path = {}) {
    const config::Yaml* kind = config::find(tree, "kind");
    const config::Yaml* items = config::find(tree, "items");
    if (kind == nullptr || items == nullptr || !kind->scalar.ends_with("List")) {
      objects_.push_back({&tree, &file, path});
      return {};
    }
    const std::string below = path.empty() ? "items" : path + ".items";
    ASSIGN(list, Value(*items, file, below).items());
    for (std::size_t i = 0; i < items->items.size(); ++i)
      if (auto done = add_objects(items->items[i], file, fmt::format("{}[{}]", below, i)); !done)
        return done;
    return {};
  }

  Result<void> keep(ReadDocument&& document) {
    const std::string key =
        fmt::format("{} {}", kind_of(document.document), name_of(document.document));
    const auto [at, fresh] = index_.emplace(key, read_.size());
    if (!fresh)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{}: {} is there twice; the first is at {}",
                              to_string(document.place), key, to_string(read_[at->second].place)));
    read_.push_back(std::move(document));
    return {};
  }

  Result<void> translate() {
    if (objects_.empty()) return {};
    ASSIGN(merged, merge_manifests(objects_, all(), options_.user_domain, options_.only_these));
    for (ReadDocument& document : merged->documents)
      if (auto done = keep(std::move(document)); !done) return done;
    removals_ = std::move(merged->removals);
    notes_ = std::move(merged->notes);
    return {};
  }

  [[nodiscard]] std::vector<Document> all() const {
    std::vector<Document> ours;
    for (const ReadDocument& r : read_) ours.push_back(r.document);
    const auto known = options_.only_these ? std::span<const Document>() : options_.known;
    std::vector<proto::DocumentRef> gone(options_.removals.begin(), options_.removals.end());
    gone.insert(gone.end(), removals_.begin(), removals_.end());
    return with_changes(known, ours, gone);
  }

  Result<void> resolve() {
    for (const ReadDocument& r : read_) {
      if (r.parts.empty() || options_.nodes != nullptr) continue;
      for (const auto* amount :
           {&r.parts[0].nominal, &r.parts[0].borrow, &r.parts[0].burst, &r.parts[0].lend})
        if (*amount && (*amount)->part)
          return fail(ErrorCode::invalid_argument,
                      fmt::format("{}: {}: a part of the cluster needs its controller to say how "
                                  "large the cluster is",
                                  to_string((*amount)->place), (*amount)->path));
    }
    if (options_.nodes == nullptr) return {};
    return resolve_parts(read_, capacity_of(all(), *options_.nodes), parts_);
  }

  Result<void> check() const {
    // The user may not be allowed to see all existing documents. Only those of this call are
    // checked here; the controller checks the rest.
    std::function<bool(const Document&)> blame;
    if (options_.removals.empty())
      blame = [this](const Document& document) {
        return index_.contains(fmt::format("{} {}", kind_of(document), name_of(document)));
      };
    const auto problem = find_problem(all(), blame);
    if (!problem) return {};
    const auto found = index_.find(problem->kind + " " + problem->name);
    if (found == index_.end())  // an existing document that would become invalid
      return fail(ErrorCode::invalid_argument, to_string(*problem));
    const ReadDocument& read = read_[found->second];
    Place place = read.place;
    for (std::string path = problem->path; !path.empty();) {
      if (const auto at = read.places.find(path); at != read.places.end()) {
        place = at->second;
        break;
      }
      const std::size_t point = path.rfind('.');
      path.resize(point == std::string::npos ? 0 : point);
    }
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: {}", to_string(place), to_string(*problem)));
  }

  const LoadOptions& options_;
  std::deque<config::Yaml> trees_;  // values refer to them
  std::vector<GivenObject> objects_;
  std::vector<proto::DocumentRef> removals_;
  std::vector<Note> notes_;
  std::vector<ReadDocument> read_;
  std::map<std::string, std::size_t> index_;  // "Tenant fraud" -> read_
  std::vector<std::string> parts_;
};

}  // namespace

Result<Loaded> load_documents(std::span<const std::string> paths, const LoadOptions& options,
                              const std::string& standard_input) {
  std::vector<Source> sources;
  for (const std::string& path : paths) {
    if (path == "-") {
      sources.push_back({"standard input", standard_input});
      continue;
    }
    std::vector<std::string> files;
    TRY(list_files(path, 0, true, files));
    if (files.empty())
      return fail(ErrorCode::not_found,
                  fmt::format("{}: there is no *.yaml, *.yml or *.json in it", path));
    for (const std::string& file : files) {
      ASSIGN(text, read_file(file));
      sources.push_back({file, std::move(*text)});
    }
  }
  return Load(options).run(sources);
}

Result<Loaded> load_made(std::vector<ReadDocument> made, const LoadOptions& options) {
  return Load(options).run({}, std::move(made));
}

Result<Loaded> load_text(const std::string& text, const std::string& file,
                         const LoadOptions& options) {
  const Source source{file, text};
  return Load(options).run(std::span(&source, 1));
}

}  // namespace gantry::tenancy
