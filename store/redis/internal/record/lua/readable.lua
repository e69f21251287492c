-- Only the scripts for operators touch a record that they cannot read.
if unreadable then return '!' end
