// Says which command was probably meant by one that does not exist. Pure.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace medley::cli {

// `words` are those after the program's name. Returns for example "unknown command 'tpo'; did you mean `top`?", or
// where help is found when no name is close; "" when the first word is a command or an option, or is missing.
std::string UnknownCommand(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace medley::cli
